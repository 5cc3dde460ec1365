package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// around is a machine with these variables and files.
func around(variables, files map[string]string) Surroundings {
	return Surroundings{
		Lookup: func(name string) (string, bool) { value, ok := variables[name]; return value, ok },
		Read: func(name string) ([]byte, error) {
			text, ok := files[name]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return []byte(text), nil
		},
	}
}

func me(member, addr string) Self { return Self{"home", member, addr} }

func opened(t *testing.T, text string, self Self, of Surroundings) Registry {
	t.Helper()
	r, err := Open(text, self, of)
	require.NoError(t, err)
	return r
}

// TestOpen: what is no registry is said, and no secret with it.
func TestOpen(t *testing.T) {
	require.True(t, Is("etcd://h"))
	require.False(t, Is("h:1"))
	pod := map[string]string{hostOfPods: "10.0.0.1", portOfPods: "443"}
	for _, c := range []struct{ url, want string }{
		{"zoo://h", `"zoo://" is a registry that is not known`},
		{"etcd://u:pa55@h:x", "it is no URL"},
		{"etcd://u:pa55@", "etcd:: it names no host"},
		{"etcd:///x", "it names no host: want such as etcd://10.0.0.2:2379"},
		{"consul:///x", "it names no host: want such as consul://10.0.0.2:8500"},
		{"etcd://u:pa55@h/x?ca=f", "etcd://h/x: ca, cert and key are of TLS: want etcds://"},
		{"etcd://h?x=1", `"x" is not known there, or named twice: want ca, cert, key`},
		{"etcds://h?ca=a&ca=b", `"ca" is not known there, or named twice`},
		{"etcds://h?%zz", "is not NAME=VALUE"},
		{"etcd://u:a@h#b", "it has a #"},
		{"etcds://h?ca=none", "ca: open none"},
		{"etcds://h?ca=empty", "ca: empty has no certificate"},
		{"etcds://h?cert=empty", "cert and key belong together"},
		{"etcds://h?cert=none&key=empty", "cert: open none"},
		{"etcds://h?cert=empty&key=none", "key: open none"},
		{"etcds://h?cert=empty&key=empty", "cert and key: "},
		{"consul://h/a/b", "want one word after the host"},
		{"k8s://", "want k8s://NAMESPACE/SERVICE"},
		{"k8s://n", "want k8s://NAMESPACE/SERVICE"},
		{"k8s://n/a,b", "want k8s://NAMESPACE/SERVICE"},
		{"k8s:///s", "the pod's own namespace: open " + account + "namespace"},
		{"k8s://n/s", "the authority of the interface: open " + account + "ca.crt"},
	} {
		_, err := Open(c.url, me("a", "h:1"), around(pod, map[string]string{"empty": ""}))
		require.ErrorContains(t, err, c.want, c.url)
		require.NotContains(t, err.Error(), "pa55", c.url)
	}
	_, err := Open("k8s://n/s", me("a", "h:1"), around(nil, nil))
	require.ErrorContains(t, err, "it works in a pod alone")
	_, err = Open("k8s://n/s", me("a", "h:1"), around(pod, map[string]string{account + "ca.crt": "x"}))
	require.ErrorContains(t, err, "ca.crt has no certificate")
	_, err = Open("etcd://h", me("a", "h:1"), around(map[string]string{"ETCDCTL_USER": "u"}, nil))
	require.ErrorContains(t, err, "ETCDCTL_USER has no password")
	require.Equal(t, "etcd://h:1/x", opened(t, "etcd://u:pa55@h:1/x", me("a", "h:1"), around(nil, nil)).String())
}

// consulAgent plays an agent of Consul: what is not passed for a while it does not know.
type consulAgent struct {
	t      *testing.T
	mu     sync.Mutex
	known  map[string]consulService
	passes int
}

func (c *consulAgent) ServeHTTP(out http.ResponseWriter, q *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.Header.Get("X-Consul-Token") != "secret" {
		http.Error(out, "Permission denied", http.StatusForbidden)
		return
	}
	what, id := filepath.Split(q.URL.Path)
	switch q.Method + " " + what {
	case "PUT /v1/agent/check/pass/":
		if _, ok := c.known[strings.TrimPrefix(id, "service:")]; !ok {
			http.Error(out, "Unknown check ID", http.StatusNotFound)
		}
		c.passes++
	case "PUT /v1/agent/service/":
		var s consulService
		require.NoError(c.t, json.NewDecoder(q.Body).Decode(&s))
		require.Equal(c.t, consulCheck{"service:" + s.ID, "15s", "passing", "1m0s"}, s.Check)
		c.known[s.ID] = s
	case "PUT /v1/agent/service/deregister/":
		delete(c.known, id)
	case "GET /v1/health/service/":
		require.Equal(c.t, "passing=true", q.URL.RawQuery)
		var all []consulHealth
		for _, s := range c.known {
			h := consulHealth{}
			h.Node.Address, h.Service.Address, h.Service.Port = "node", s.Address, s.Port
			if s.Name == id {
				all = append(all, h)
			}
		}
		require.NoError(c.t, json.NewEncoder(out).Encode(all))
	default:
		c.t.Errorf("%s %s", q.Method, q.URL)
	}
}

func TestConsul(t *testing.T) {
	agent := &consulAgent{t: t, known: map[string]consulService{"x": {ID: "x", Name: "models-home", Port: 5}}}
	server := httptest.NewServer(agent)
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	a := opened(t, "consul://:secret@"+at+"/models", me("a", "10.0.0.1:7"), around(nil, nil))
	b := opened(t, "consul://"+at+"/models", me("b", "[fe80::1]:8"), around(map[string]string{"CONSUL_HTTP_TOKEN": "secret"}, nil))
	other := opened(t, "consul://:secret@"+at, me("c", "h:9"), around(nil, nil))
	stranger := opened(t, "consul://:wrong@"+at, me("d", "h:9"), around(nil, nil))
	meets := func(r Registry, want ...string) {
		t.Helper()
		got, err := r.Meet(t.Context())
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
	}
	meets(a, "10.0.0.1:7", "node:5")
	meets(b, "10.0.0.1:7", "[fe80::1]:8", "node:5")
	meets(other, "h:9")
	meets(a, "10.0.0.1:7", "[fe80::1]:8", "node:5")
	require.Equal(t, 4, agent.passes, "three were not known yet")
	_, err := stranger.Meet(t.Context())
	require.EqualError(t, err, `it answers 403: "Permission denied"`)
	agent.mu.Lock()
	clear(agent.known)
	agent.mu.Unlock()
	meets(a, "10.0.0.1:7")
	require.NoError(t, b.Leave(t.Context()))
	require.NoError(t, a.Leave(t.Context()))
	meets(b, "[fe80::1]:8")
	for _, r := range []Registry{b, other} {
		require.NoError(t, r.Leave(t.Context()))
	}
	require.Error(t, stranger.Leave(t.Context()))
	require.Empty(t, agent.known)
	server.Close()
	_, err = a.Meet(t.Context())
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), "http")
}

func TestKubernetes(t *testing.T) {
	token := "first"
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+token {
			out.WriteHeader(http.StatusForbidden)
			fmt.Fprint(out, `{"kind":"Status"}`)
			return
		}
		require.Equal(t, "/apis/discovery.k8s.io/v1/namespaces/models/endpointslices", q.URL.Path)
		require.Equal(t, "kubernetes.io/service-name=pods", q.URL.Query().Get("labelSelector"))
		fmt.Fprint(out, `{"kind":"EndpointSliceList","items":[{"addressType":"IPv4","ports":[{"port":80}],"endpoints":[`+
			`{"addresses":["10.0.0.1"],"conditions":{"ready":true}},{"addresses":["10.0.0.2"],"conditions":{"ready":false}},{}]},`+
			`{"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}]},{}]}`)
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	files := map[string]string{account + "namespace": "models\n", account + "token": "first\n",
		account + "ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}
	pod := around(map[string]string{hostOfPods: u.Hostname(), portOfPods: u.Port()}, files)
	for _, c := range []struct {
		url, self string
		want      []string
	}{
		{"k8s:///pods", "10.0.0.1:7777", []string{"10.0.0.1:7777", "10.0.0.2:7777"}},
		{"k8s://models/pods?port=5", "[fd00::1]:7", []string{"[fd00::1]:5"}},
		{"k8s://models/pods", "name:7", []string{"10.0.0.1:7", "10.0.0.2:7", "[fd00::1]:7"}},
	} {
		r := opened(t, c.url, me("a", c.self), pod)
		got, err := r.Meet(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.NoError(t, r.Leave(t.Context()))
	}
	_, err = Open("k8s:///pods?port=0", me("a", "h:1"), pod)
	require.ErrorContains(t, err, "want a number from 1 to 65535")
	r := opened(t, "k8s:///pods", me("a", "h:1"), pod)
	token = "second"
	_, err = r.Meet(t.Context())
	require.EqualError(t, err, `it answers 403: "{\"kind\":\"Status\"}": let the pod's account list endpointslices of discovery.k8s.io`)
	files[account+"token"] = "second"
	_, err = r.Meet(t.Context())
	require.NoError(t, err)
	delete(files, account+"token")
	_, err = r.Meet(t.Context())
	require.ErrorContains(t, err, "the pod's token: open")
	require.NoError(t, r.Leave(t.Context()))
}

// TestSecure: a server that is not the authority's is refused, and one that asks for a certificate is shown ours.
func TestSecure(t *testing.T) {
	shown := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		shown = len(q.TLS.PeerCertificates)
		fmt.Fprint(out, "[]")
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	files := map[string]string{"ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		"key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
	at := "consuls://" + strings.TrimPrefix(server.URL, "https://")
	good := opened(t, at+"?ca=ca&cert=ca&key=key", me("a", "h:1"), around(nil, files))
	_, err = good.Meet(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, shown)
	require.NoError(t, good.Leave(t.Context()))
	_, err = opened(t, at, me("a", "h:1"), around(nil, files)).Meet(t.Context())
	require.ErrorContains(t, err, "certificate")
}

// answering is a network where everybody answers the same.
type answering struct {
	status int
	body   []byte
	where  string // to be asked elsewhere
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(bytes.NewReader(a.body)),
		Header: http.Header{"Location": {a.where}}}, nil
}

func answered(t testing.TB, a answering) map[string]Registry {
	files := map[string]string{account + "token": "t"}
	all := map[string]Registry{}
	for scheme, of := range map[string]string{"etcd": "etcd://u:pa55@h", "consul": "consul://h"} {
		r, err := Open(of, me("a", "h:1"), around(nil, files))
		require.NoError(t, err)
		all[scheme] = r
	}
	all["etcd"].(*etcd).http.Transport = a
	all["consul"].(*consul).http.Transport = a
	k := &kubernetes{client: &client{base: "http://h", http: caller(nil), head: http.Header{}},
		read: around(nil, files).Read, port: "1"}
	k.http.Transport = a
	all["k8s"] = k
	return all
}

// TestBadAnswers: what no registry says is said, bounded, and nobody is asked elsewhere.
func TestBadAnswers(t *testing.T) {
	for _, c := range []struct {
		a    answering
		want string
	}{
		{answering{status: 200, body: []byte("<html>")}, "is not the JSON that is known"},
		{answering{status: 200, body: make([]byte, mostAnswer+1)}, "it answers with more than 4194304 bytes"},
		{answering{status: 503, body: bytes.Repeat([]byte("x"), 9999)}, "it answers 503: \"" + strings.Repeat("x", 300) + "\""},
		{answering{status: 307, where: "http://elsewhere.invalid/"}, "it answers 307: \"\""},
	} {
		for name, r := range answered(t, c.a) {
			if _, ok := r.(*consul); ok && c.a.status == 200 {
				require.ErrorContains(t, r.(*consul).call(t.Context(), "GET", "/", nil, &[]int{}), c.want)
				continue
			}
			_, err := r.Meet(t.Context())
			require.ErrorContains(t, err, c.want, name)
			require.NotContains(t, err.Error(), "pa55")
		}
	}
	_, err := answered(t, answering{status: 200, body: []byte("{}")})["etcd"].Meet(t.Context())
	require.EqualError(t, err, "it grants a lease without a number")
}

// FuzzAnswers: whatever a registry answers, it is an error or a list of what it named.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{`{"token":"t","ID":"7","kvs":[{"key":"YQ==","value":"aDox"}]}`, `{"result":{"TTL":"5"}}`,
		`[{"Node":{"Address":"h"},"Service":{"Port":5}}]`, `{"items":[{"endpoints":[{"addresses":["::1","x"]}]}]}`, "null", `{"ID":5}`} {
		f.Add(200, []byte(text))
	}
	f.Add(404, []byte("no"))
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		for _, r := range answered(t, answering{status: status, body: text}) {
			for range 2 {
				addrs, err := r.Meet(context.Background())
				if err != nil {
					require.Nil(t, addrs)
				}
				require.LessOrEqual(t, len(addrs), len(text))
			}
			_ = r.Leave(context.Background()) // it may be refused
		}
	})
}

// FuzzOpen: any word of --join is a registry or an error, and neither shows a password.
func FuzzOpen(f *testing.F) {
	for _, text := range []string{"@h:1/x?ca=f", "@h", "/s@h", "%zz@h", "#@h", "?x@h", "@n/s?port=5", "@", ":"} {
		f.Add(text)
	}
	files := map[string]string{account + "namespace": "n", account + "ca.crt": "x", account + "token": "t"}
	pod := map[string]string{hostOfPods: "10.0.0.1", portOfPods: "443"}
	f.Fuzz(func(t *testing.T, text string) {
		for _, scheme := range []string{"etcd", "etcds", "consul", "consuls", "k8s", "zoo"} {
			r, err := Open(scheme+"://u:pa55"+text, me("a", "h:1"), around(pod, files))
			shows := fmt.Sprint(r, err)
			require.False(t, strings.Contains(shows, "pa55") && !strings.Contains(text, "pa55"), shows)
		}
	})
}

// TestMachine: files are read as they are, so far as they are not too long.
func TestMachine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, make([]byte, mostFile+5), 0o600))
	text, err := Machine(os.LookupEnv).Read(name)
	require.NoError(t, err)
	require.Len(t, text, mostFile)
	_, err = Machine(os.LookupEnv).Read(name + "x")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
