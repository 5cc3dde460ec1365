package pass

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Pass proves that a member belongs to its cluster.
type Pass struct {
	Cluster, Member string
	Expires         time.Time

	pair  tls.Certificate
	roots *x509.CertPool
	now   func() time.Time
}

// Parse reads a member's pass, and refuses one that is of no use at this time.
func Parse(text []byte, now func() time.Time) (*Pass, error) {
	key, certs, err := decode(text)
	if err != nil {
		return nil, err
	}
	own := certs[0]
	switch at := now(); {
	case own.IsCA:
		return nil, fmt.Errorf("it is the authority of cluster %q, which stays where passes are made: want a member's pass",
			own.Subject.CommonName)
	case len(certs) != 2:
		return nil, fmt.Errorf("it has %d certificates: want the member's and its authority's", len(certs))
	case at.After(own.NotAfter):
		return nil, fmt.Errorf("it was valid until %s: make another with sluice cluster cert", date(own.NotAfter))
	case at.Before(own.NotBefore):
		return nil, fmt.Errorf("it is valid from %s on, and this machine's clock says %s", date(own.NotBefore), date(at))
	}
	p := &Pass{Cluster: certs[1].Subject.CommonName, Member: own.Subject.CommonName, Expires: own.NotAfter, now: now,
		roots: x509.NewCertPool()}
	p.pair = tls.Certificate{Certificate: [][]byte{own.Raw}, PrivateKey: key, Leaf: own}
	p.roots.AddCert(certs[1])
	o := x509.VerifyOptions{Roots: p.roots, CurrentTime: now(), DNSName: hostOf(p.Cluster)}
	if _, err := own.Verify(o); err != nil {
		return nil, fmt.Errorf("its two certificates do not belong together: %w", err)
	}
	return p, nil
}

// errNone is the fault of a client without a certificate.
var errNone = errors.New("it shows no certificate")

// Server is the configuration of a member that others call: who is no member gets no further than the handshake.
func (p *Pass) Server() *tls.Config {
	c := p.config()
	c.ClientCAs = p.roots
	c.ClientAuth = tls.VerifyClientCertIfGiven // and VerifyConnection wants one: its error has a name
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.VerifiedChains) == 0 {
			return errNone
		}
		return s.PeerCertificates[0].VerifyHostname(hostOf(p.Cluster))
	}
	return c
}

// Client is the configuration of a member that calls another one, at any address.
func (p *Pass) Client() *tls.Config {
	c := p.config()
	c.RootCAs, c.ServerName = p.roots, hostOf(p.Cluster)
	return c
}

func (p *Pass) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.pair}, Time: p.now,
		NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true} // each connection shows certificates
}

// MemberOf is the name of the member at the other end of a connection.
func MemberOf(s *tls.ConnectionState) string {
	if s == nil || len(s.VerifiedChains) == 0 {
		return ""
	}
	return s.PeerCertificates[0].Subject.CommonName
}

// Stranger is the error of a connection to whoever does not belong to the cluster, or takes us not to.
type Stranger struct {
	Why string
	err error
}

func (s *Stranger) Error() string { return s.Why }

func (s *Stranger) Unwrap() error { return s.err }

// Explain says of an error of a connection why the other side is no member, if that is the reason; else it returns the
// error as it is.
func (p *Pass) Explain(err error) error {
	why := p.why(err)
	if why == "" {
		return err
	}
	return &Stranger{why, err}
}

func (p *Pass) why(err error) string {
	var invalid x509.CertificateInvalidError
	var op *net.OpError
	switch {
	case errors.Is(err, errNone):
		return fmt.Sprintf("it shows no certificate: want a member of cluster %q, which has a pass", p.Cluster)
	case errors.As(err, new(tls.RecordHeaderError)):
		return fmt.Sprintf("it does not speak TLS: want the address where a member of cluster %q takes others", p.Cluster)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("its pass was valid from %s to %s, and this machine's clock says %s: make it another with sluice "+
			"cluster cert", date(invalid.Cert.NotBefore), date(invalid.Cert.NotAfter), date(p.now()))
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return fmt.Sprintf("its certificate is of another authority than that of cluster %q: want a pass of ours", p.Cluster)
	case errors.As(err, &invalid), errors.As(err, new(x509.HostnameError)):
		return fmt.Sprintf("its certificate is not for members of cluster %q: %v", p.Cluster, err)
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Sprintf("it refuses our pass, of %s: %s: see its log", p.Member, strings.TrimPrefix(op.Err.Error(), "tls: "))
	}
	return ""
}
