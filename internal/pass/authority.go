package pass

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

const (
	// authorityLife is how long an authority's certificate is valid.
	authorityLife = 10 * 365 * 24 * time.Hour
	// skew is how far the clocks of members may be apart when a certificate is new.
	skew = 10 * time.Minute
	// mostFile bounds the bytes of a file that is read.
	mostFile = 64 << 10

	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// Authority vouches for the members of one cluster.
type Authority struct {
	Cluster string
	Expires time.Time

	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority.
func NewAuthority(cluster string, now time.Time) (*Authority, error) {
	if err := checkName("cluster", cluster); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: cluster}, NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{hostOf(cluster)},
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := sign(template, template, public, private)
	if err != nil {
		return nil, err
	}
	return &Authority{Cluster: cluster, Expires: cert.NotAfter, cert: cert, key: private}, nil
}

// sign makes a certificate with a number of its own.
func sign(template, above *x509.Certificate, public ed25519.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = number
	der, err := x509.CreateCertificate(rand.Reader, template, above, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// hostOf is the name that the certificates of a cluster's members are for, wherever these are.
func hostOf(cluster string) string { return cluster + ".cluster.sluice" }

// checkName refuses names that certificates, addresses or files could not have.
func checkName(of, name string) error {
	fits := len(name) <= 40 && len(name) > 0 && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range name {
		fits = fits && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", c)
	}
	if !fits {
		return fmt.Errorf("%s %.60q: want a name of 1 to 40 small letters, digits and hyphens, with no hyphen at an end", of, name)
	}
	return nil
}

// Marshal is the file of an authority, PEM, with its private key.
func (a *Authority) Marshal() ([]byte, error) {
	words := fmt.Sprintf("Authority of the sluice cluster %s. Whoever has this file can make members: keep it secret, "+
		"and away from them.\n", a.Cluster)
	return encode(words, a.key, a.cert)
}

// encode writes words, a private key and certificates, PEM.
func encode(words string, key crypto.Signer, certs ...*x509.Certificate) ([]byte, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBufferString(words)
	if err := pem.Encode(b, &pem.Block{Type: keyBlock, Bytes: secret}); err != nil {
		return nil, err
	}
	for _, c := range certs {
		if err := pem.Encode(b, &pem.Block{Type: certificateBlock, Bytes: c.Raw}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// decode reads what encode writes.
func decode(text []byte) (key crypto.Signer, certs []*x509.Certificate, err error) {
	if len(text) > mostFile {
		return nil, nil, fmt.Errorf("it has %d bytes or more: want at most %d", len(text), mostFile)
	}
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		switch b.Type {
		case keyBlock:
			read, err := x509.ParsePKCS8PrivateKey(b.Bytes)
			if err != nil {
				return nil, nil, fmt.Errorf("its private key: %w", err)
			}
			var fits bool
			if key, fits = read.(crypto.Signer); !fits {
				return nil, nil, fmt.Errorf("its private key is a %T: want one that signs", read)
			}
		case certificateBlock:
			c, err := x509.ParseCertificate(b.Bytes)
			if err != nil {
				return nil, nil, fmt.Errorf("its certificate %d: %w", len(certs)+1, err)
			}
			certs = append(certs, c)
		}
	}
	if key == nil || len(certs) == 0 {
		return nil, nil, errors.New("it lacks a private key or a certificate: want a file that sluice cluster cert made")
	}
	if !equal(certs[0].PublicKey, key.Public()) {
		return nil, nil, errors.New("its private key is not that of its certificate")
	}
	return key, certs, nil
}

func equal(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// ParseAuthority reads an authority's file.
func ParseAuthority(text []byte) (*Authority, error) {
	key, certs, err := decode(text)
	if err != nil {
		return nil, err
	}
	if !certs[0].IsCA {
		return nil, fmt.Errorf("it is the pass of member %q: want the authority's own file", certs[0].Subject.CommonName)
	}
	return &Authority{Cluster: certs[0].Subject.CommonName, Expires: certs[0].NotAfter, cert: certs[0], key: key}, nil
}

// Pass makes the file of a member's pass, PEM, which is valid for so long from now on, and returns until when that is.
func (a *Authority) Pass(member string, now time.Time, life time.Duration) (text []byte, until time.Time, err error) {
	if err := checkName("member", member); err != nil {
		return nil, until, err
	}
	if now.After(a.Expires) {
		return nil, until, fmt.Errorf("the authority of cluster %q ended on %s: make another one, and passes for all members",
			a.Cluster, date(a.Expires))
	}
	if until = now.Add(life); until.After(a.Expires) {
		until = a.Expires
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: member}, DNSNames: []string{hostOf(a.Cluster)}, NotBefore: now.Add(-skew), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, until, err
	}
	cert, err := sign(template, a.cert, public, a.key)
	if err != nil {
		return nil, until, err
	}
	text, err = encode(fmt.Sprintf("Pass of %s, a member of the sluice cluster %s, until %s. Whoever has this file is that "+
		"member: keep it secret.\n", member, a.Cluster, date(until)), private, cert, a.cert)
	return text, until, err
}

// date is a day as messages have it.
func date(t time.Time) string { return t.UTC().Format("2006-01-02") }
