package pass

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var today = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

const year = 365 * 24 * time.Hour

func authority(t *testing.T, cluster string) *Authority {
	t.Helper()
	a, err := NewAuthority(cluster, today.Add(-24*time.Hour))
	require.NoError(t, err)
	return a
}

// written is the text of a member's pass.
func written(t *testing.T, a *Authority, member string) string {
	t.Helper()
	text, until, err := a.Pass(member, today, year)
	require.NoError(t, err)
	require.Equal(t, today.Add(year), until)
	return string(text)
}

func parsed(t *testing.T, a *Authority, member string) *Pass {
	t.Helper()
	p, err := Parse([]byte(written(t, a, member)), at(today))
	require.NoError(t, err)
	return p
}

// meet has a client call a server, says hello, and returns what each side has of the other: its name, or why not.
func meet(t *testing.T, server, client *Pass, serves, calls *tls.Config) (called, caller string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	done := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			done <- err.Error()
			return
		}
		defer c.Close()
		done <- greet(server, tls.Server(c, serves))
	}()
	raw, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer raw.Close()
	if calls == nil {
		_, err = io.WriteString(raw, "GET / HTTP/1.1\r\n\r\n")
		require.NoError(t, err)
		return "", <-done
	}
	return greet(client, tls.Client(raw, calls)), <-done
}

// greet shakes hands, writes and reads a byte, and returns the name of the other side, or what is wrong with it.
func greet(p *Pass, c *tls.Conn) string {
	defer c.Close()
	err := c.Handshake()
	if err == nil {
		_, err = c.Write([]byte{1})
	}
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1)) // what the other side thinks of our certificate is heard here
	}
	if err != nil {
		return p.Explain(err).Error()
	}
	s := c.ConnectionState()
	return MemberOf(&s)
}

// Members know each other by name, and others are refused, by name, too.
func TestMeet(t *testing.T) {
	home := authority(t, "home")
	a, b := parsed(t, home, "a"), parsed(t, home, "b")
	called, caller := meet(t, a, b, a.Server(), b.Client())
	require.Equal(t, "a", called)
	require.Equal(t, "b", caller)

	foreign := parsed(t, authority(t, "home"), "c") // an authority of the same name
	other := parsed(t, authority(t, "office"), "d")
	text, _, err := home.Pass("f", today.Add(-2*time.Hour), time.Hour)
	require.NoError(t, err)
	expired, err := Parse(text, at(today.Add(-90*time.Minute)))
	require.NoError(t, err)
	expired.now = at(today)
	none := b.Client()
	none.Certificates = nil
	for _, c := range []struct {
		name           string
		server, client *Pass
		calls          *tls.Config
		called, caller string
	}{
		{"no certificate", a, b, none, "it refuses our pass, of b: bad certificate", "it shows no certificate: want a member of cluster"},
		{"no TLS", a, b, nil, "", `it does not speak TLS: want the address where a member of cluster "home"`},
		{"foreign client", a, foreign, func() *tls.Config { c := foreign.Client(); c.RootCAs = a.roots; return c }(),
			"it refuses our pass, of c: ", `its certificate is of another authority than that of cluster "home"`},
		{"foreign server", foreign, a, a.Client(), `its certificate is of another authority than that of cluster "home"`,
			"it refuses our pass, of c: "},
		{"another cluster", other, a, a.Client(), `its certificate is`, "it refuses our pass, of d: "},
		{"expired client", a, expired, expired.Client(), "it refuses our pass, of f: expired certificate",
			"its pass was valid from 2031-05-06 to 2031-05-06, and this machine's clock says 2031-05-06: make it another"},
		{"expired server", expired, a, a.Client(), "its pass was valid from 2031-05-06", "it refuses our pass, of f: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			called, caller := meet(t, c.server, c.client, c.server.Server(), c.calls)
			require.Contains(t, called, c.called)
			require.Contains(t, caller, c.caller)
		})
	}
}

// A pass for servers of another cluster is of no use, even where both clusters have one authority's key.
func TestNameOfCluster(t *testing.T) {
	home := authority(t, "home")
	a, b := parsed(t, home, "a"), parsed(t, home, "b")
	b.Cluster = "office"
	called, _ := meet(t, a, b, a.Server(), b.Client())
	require.Contains(t, called, `its certificate is not for members of cluster "office"`)
	b.Cluster = "home"
	a.Cluster = "office"
	_, caller := meet(t, a, b, a.Server(), b.Client())
	require.Contains(t, caller, `its certificate is not for members of cluster "office"`)
}

// TestParse reads what was written, and refuses what no pass can be with the reason.
func TestParse(t *testing.T) {
	home := authority(t, "home")
	text, err := home.Marshal()
	require.NoError(t, err)
	again, err := ParseAuthority(text)
	require.NoError(t, err)
	require.Equal(t, "home", again.Cluster)
	require.True(t, again.Expires.Equal(today.Add(authorityLife-24*time.Hour)))
	good := written(t, again, "a")
	p, err := Parse([]byte(good), at(today))
	require.NoError(t, err)
	require.Equal(t, "home a", p.Cluster+" "+p.Member)
	require.True(t, p.Expires.Equal(today.Add(year)))
	require.Contains(t, good, "Pass of a, a member of the sluice cluster home, until 2032-05-05.")

	blocks := strings.SplitAfter(good, "-----\n") // words; key, its end; certificate, its end; the authority's
	require.Len(t, blocks, 7)
	key, cert, above := blocks[1], strings.Join(blocks[2:4], ""), strings.Join(blocks[4:6], "")
	key = blocks[0][strings.Index(blocks[0], "-----BEGIN"):] + key
	foreign := written(t, authority(t, "home"), "a")
	alien := strings.Join(strings.SplitAfter(foreign, "-----\n")[4:6], "")
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "it lacks a private key or a certificate"},
		{"no key", cert + above, "it lacks a private key or a certificate"},
		{"no certificate", key, "it lacks a private key or a certificate"},
		{"another's key", key + alien, "its private key is not that of its certificate"},
		{"no authority", key + cert, "it has 1 certificates: want the member's and its authority's"},
		{"more", good + alien, "it has 3 certificates"},
		{"another authority", key + cert + alien, "its two certificates do not belong together"},
		{"the authority", string(text), `it is the authority of cluster "home", which stays where passes are made`},
		{"a broken key", strings.Replace(good, key[28:40], "AAAAAAAAAAAA", 1), "its private key: "},
		{"a broken certificate", key + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "its certificate 1: "},
		{"long", strings.Repeat("x", mostFile+1), "bytes or more: want at most"},
	} {
		_, err := Parse([]byte(c.text), at(today))
		require.ErrorContains(t, err, c.want, c.name)
	}
	_, err = Parse([]byte(good), at(today.Add(2*year)))
	require.EqualError(t, err, "it was valid until 2032-05-05: make another with sluice cluster cert")
	_, err = Parse([]byte(good), at(today.Add(-48*time.Hour)))
	require.EqualError(t, err, "it is valid from 2031-05-06 on, and this machine's clock says 2031-05-04")
	_, err = ParseAuthority([]byte(good))
	require.EqualError(t, err, `it is the pass of member "a": want the authority's own file`)
	_, err = ParseAuthority(nil)
	require.Error(t, err)
}

// Names fit into certificates and files; a pass does not outlive its authority.
func TestMake(t *testing.T) {
	for _, name := range []string{"", "-a", "a-", "a.b", "a/b", "A", "ü", strings.Repeat("a", 41), "..", "a\n"} {
		_, err := NewAuthority(name, today)
		require.ErrorContains(t, err, "cluster ", name)
		_, _, err = authority(t, "home").Pass(name, today, year)
		require.ErrorContains(t, err, "member ", name)
	}
	home := authority(t, "a-1")
	_, until, err := home.Pass("b", today, 100*year)
	require.NoError(t, err)
	require.True(t, until.Equal(home.Expires))
	_, _, err = home.Pass("b", home.Expires.Add(time.Second), year)
	require.ErrorContains(t, err, `the authority of cluster "a-1" ended on 2041-05-02: make another one`)
}

// Other errors of connections stay what they are.
func TestExplain(t *testing.T) {
	p := parsed(t, authority(t, "home"), "a")
	require.Equal(t, io.EOF, p.Explain(io.EOF))
	var stranger *Stranger
	require.ErrorAs(t, p.Explain(errNone), &stranger)
	require.True(t, errors.Is(stranger, errNone))
	require.Empty(t, MemberOf(nil))
	require.Empty(t, MemberOf(&tls.ConnectionState{}))
}
