package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Where a pod finds what it needs to ask its cluster's interface.
const (
	account    = "/var/run/secrets/kubernetes.io/serviceaccount/"
	hostOfPods = "KUBERNETES_SERVICE_HOST"
	portOfPods = "KUBERNETES_SERVICE_PORT"
)

// kubernetes is a registry of a service's pods. They are listed whether they are ready or not: a member is reached
// before its models are loaded.
type kubernetes struct {
	*client
	path string
	read func(file string) ([]byte, error)
	ours netip.Addr // of the pods' addresses those of its kind count; zero: all
	port string
}

func newKubernetes(u *url.URL, self Self, of Surroundings) (*kubernetes, error) {
	query, err := settings(u, "port")
	if err != nil {
		return nil, err
	}
	service := strings.Trim(u.Path, "/")
	if service == "" || strings.ContainsAny(service, "/?#%,=") {
		return nil, errors.New("want k8s://NAMESPACE/SERVICE, or k8s:///SERVICE in the pod's own namespace")
	}
	host, ok := of.Lookup(hostOfPods)
	port, also := of.Lookup(portOfPods)
	if !ok || !also {
		return nil, fmt.Errorf("%s and %s are not set: it works in a pod alone", hostOfPods, portOfPods)
	}
	namespace := u.Host
	if namespace == "" {
		text, err := of.Read(account + "namespace")
		if err != nil {
			return nil, fmt.Errorf("the pod's own namespace: %w", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	trusted, err := of.Read(account + "ca.crt")
	if err != nil {
		return nil, fmt.Errorf("the authority of the interface: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted) {
		return nil, fmt.Errorf("%sca.crt has no certificate", account)
	}
	k := &kubernetes{client: &client{name: shown(u), base: "https://" + net.JoinHostPort(host, port), head: http.Header{},
		http: caller(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})}, read: of.Read}
	k.path = "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices?labelSelector=" +
		url.QueryEscape("kubernetes.io/service-name="+service)
	ours, own, err := net.SplitHostPort(self.Addr)
	if err != nil {
		return nil, err
	}
	k.ours, _ = netip.ParseAddr(ours) // a name is of neither kind
	if k.port = query.Get("port"); k.port == "" {
		k.port = own
	} else if n, err := strconv.ParseUint(k.port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("port is %.80q: want a number from 1 to 65535", k.port)
	}
	return k, nil
}

// endpointSlices are Kubernetes' endpoint slices, as far as they are used here.
type endpointSlices struct {
	Items []struct {
		Endpoints []struct{ Addresses []string }
	}
}

// Meet implements Registry. Kubernetes knows of us: nothing is said. The token is read each time, since it is renewed.
func (k *kubernetes) Meet(ctx context.Context) ([]string, error) {
	token, err := k.read(account + "token")
	if err != nil {
		return nil, fmt.Errorf("the pod's token: %w", err)
	}
	k.head.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	var got endpointSlices
	if err := k.call(ctx, http.MethodGet, k.path, nil, &got); err != nil {
		if no := (*refused)(nil); errors.As(err, &no) && no.status == http.StatusForbidden {
			err = fmt.Errorf("%w: let the pod's account list endpointslices of discovery.k8s.io", err)
		}
		return nil, err
	}
	var addrs []string
	for _, slice := range got.Items {
		for _, e := range slice.Endpoints {
			if len(e.Addresses) == 0 {
				continue
			}
			at, err := netip.ParseAddr(e.Addresses[0])
			if err == nil && k.ours.IsValid() && at.Is4() != k.ours.Is4() {
				continue // the same pod by its other address
			}
			addrs = append(addrs, net.JoinHostPort(e.Addresses[0], k.port))
		}
	}
	return addrs, nil
}

// Leave implements Registry.
func (k *kubernetes) Leave(context.Context) error {
	k.http.CloseIdleConnections()
	return nil
}
