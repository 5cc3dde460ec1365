//go:build !linux

package exchange

import "net"

// watch does nothing on this system: a client that has gone is noticed when an event cannot be sent.
type watch struct{}

func newWatch(net.Conn, func()) *watch { return &watch{} }

func (*watch) stop() {}
