package remote

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sluice-ai/sluice/internal/pass"
)

// Path is what a member of a cluster is asked for where it takes others, by a request whose connection then carries
// frames instead of HTTP.
const Path = "/cluster/layers"

// Welcome is the answer of a member that lends.
const Welcome = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: sluice-layers\r\n\r\n"

// shaking bounds how long a connection may take until frames can be sent.
const shaking = 5 * time.Second

// Dial returns a function that connects to a member of a cluster at an address where it takes others. It returns the
// member's name, which its pass says, as well.
func Dial(p *pass.Pass, addr string) func(context.Context) (net.Conn, string, error) {
	return func(ctx context.Context) (_ net.Conn, name string, err error) {
		ctx, cancel := context.WithTimeout(ctx, shaking)
		defer cancel()
		conn, err := (&tls.Dialer{Config: p.Client()}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, "", p.Explain(err)
		}
		defer func() {
			if err != nil {
				_ = conn.Close() // the first error says more
			}
		}()
		state := conn.(*tls.Conn).ConnectionState()
		name = pass.MemberOf(&state)
		_ = conn.SetDeadline(time.Now().Add(shaking)) // or reading fails
		q := "POST " + Path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
		if _, err := io.WriteString(conn, q); err != nil {
			return nil, name, err
		}
		r := bufio.NewReader(conn)
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return nil, name, p.Explain(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusSwitchingProtocols {
			return nil, name, refused(name, answer)
		}
		_ = conn.SetDeadline(time.Time{})
		return &upgraded{conn, r}, name, nil
	}
}

// refused says why a member does not lend.
func refused(name string, answer *http.Response) error {
	var said struct{ Error struct{ Message string } }
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostFault))
	_ = json.Unmarshal(text, &said) // without words, the status has to do
	return fmt.Errorf("%s answers %d: %.300s", name, answer.StatusCode, said.Error.Message)
}

// upgraded is a connection of which some bytes may have been read already.
type upgraded struct {
	net.Conn
	r *bufio.Reader
}

func (u *upgraded) Read(p []byte) (int, error) { return u.r.Read(p) }
