package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// consul is a registry whose members are instances of a service, each with a check that it keeps up: SERVICE-CLUSTER.
type consul struct {
	*client
	service, id string
	host        string
	port        int
}

func newConsul(u *url.URL, self Self, of Surroundings) (*consul, error) {
	c, err := newClient(u, "8500", of)
	if err != nil {
		return nil, err
	}
	service := strings.Trim(u.Path, "/")
	if service == "" {
		service = "sluice"
	}
	if strings.ContainsAny(service, "/?#%") {
		return nil, errors.New("want one word after the host, the name of a service")
	}
	token, ok := u.User.Password()
	if !ok {
		token, _ = of.Lookup("CONSUL_HTTP_TOKEN")
	}
	if token != "" {
		c.head.Set("X-Consul-Token", token)
	}
	service += "-" + self.Cluster
	host, port, err := net.SplitHostPort(self.Addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return &consul{c, service, service + "-" + self.Member, host, int(number)}, err
}

// Consul's messages, as far as they are used here.
type (
	consulService struct {
		ID, Name, Address string
		Port              int
		Check             consulCheck
	}
	consulCheck struct {
		CheckID, TTL, Status           string
		DeregisterCriticalServiceAfter string
	}
	consulHealth struct {
		Node    struct{ Address string }
		Service struct {
			Address string
			Port    int
		}
	}
)

// forgotten is how long Consul lists a member as failing before it forgets it; less than a minute it does not take.
const forgotten = time.Minute

// Meet implements Registry.
func (c *consul) Meet(ctx context.Context) ([]string, error) {
	err := c.call(ctx, http.MethodPut, "/v1/agent/check/pass/"+url.PathEscape(c.check()), nil, nil)
	no := (*refused)(nil)
	if errors.As(err, &no) && (no.status == http.StatusNotFound || no.status == http.StatusInternalServerError) {
		err = c.register(ctx) // it does not know of us, or does not any more
	}
	if err != nil {
		return nil, err
	}
	var got []consulHealth
	if err := c.call(ctx, http.MethodGet, "/v1/health/service/"+url.PathEscape(c.service)+"?passing=true", nil, &got); err != nil {
		return nil, err
	}
	var addrs []string
	for _, m := range got {
		host := m.Service.Address
		if host == "" {
			host = m.Node.Address
		}
		addrs = append(addrs, net.JoinHostPort(host, strconv.Itoa(m.Service.Port)))
	}
	return addrs, nil
}

func (c *consul) check() string { return "service:" + c.id }

func (c *consul) register(ctx context.Context) error {
	return c.call(ctx, http.MethodPut, "/v1/agent/service/register", &consulService{c.id, c.service, c.host, c.port,
		consulCheck{c.check(), life.String(), "passing", forgotten.String()}}, nil)
}

// Leave implements Registry.
func (c *consul) Leave(ctx context.Context) error {
	defer c.http.CloseIdleConnections()
	return c.call(ctx, http.MethodPut, "/v1/agent/service/deregister/"+url.PathEscape(c.id), nil, nil)
}
