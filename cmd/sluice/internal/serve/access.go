package serve

import (
	"net"
	"net/netip"
	"strings"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/server"
	"github.com/sluice-ai/sluice/server/page"
)

// accessFlags say which clients may use a server, and under which host names.
type accessFlags struct {
	Open        bool     `help:"Let everybody who reaches the address ask, without a key. Needed where it is not this machine's alone."`
	HostName    []string `name:"host-name" sep:"none" placeholder:"NAME" help:"Name by which clients may ask for this server, besides localhost and addresses. May be repeated. Other names are refused unless there is a key: web pages could use them."`
	Proxy       []string `name:"trusted-proxy" sep:"none" placeholder:"ADDRESS" help:"Address or network (10.0.0.0/8) of a proxy that may say, by X-Forwarded-For, whose requests it hands on. May be repeated."`
	Cors        []string `name:"cors" sep:"none" placeholder:"ORIGIN" help:"Origin of web pages that may ask, such as https://chat.example.org or app://obsidian.md: scheme and host, and the port if there is one (* is any). May be repeated. * alone is all of them, and needs a key. Pages of this machine's own servers (http://localhost:5173) may ask without it where --addr is loopback."`
	MCP         []string `name:"mcp" sep:"none" placeholder:"ORIGIN" help:"Origin of servers of tools (MCP over HTTP) that the page may ask, such as http://localhost:3000. May be repeated. The browser asks them, and no other."`
	Promises    bool     `help:"Let a request with a deadline (deadline_ms, X-Deadline) go before those of other clients, one of each client at a time: what was foreseen of it then holds, whoever comes later. Without it a deadline is foreseen and kept as well, but for what comes later."`
	FetchImages bool     `name:"fetch-images" help:"Fetch pictures that requests name by http:// or https:// addresses, for models that see. Only public addresses are asked, without a proxy, at most 16 MB. Without it pictures are sent in requests."`
	SharePrefix bool     `name:"share-prefix" help:"Let clients with different keys find each other's prompts in the prefix cache: faster, and they can find out what others asked."`
}

// options returns the server's options that these flags give.
func (f *accessFlags) options(keys []string) (server.Options, error) {
	o := server.Options{APIKeys: keys, HostNames: f.HostName, SharePrefix: f.SharePrefix, FetchImages: f.FetchImages,
		Promises: f.Promises}
	for _, name := range f.HostName {
		if name == "" {
			return o, env.Usagef("--host-name is empty: want a name such as llm.example.org")
		}
		if strings.ContainsAny(name, "/:@ ") {
			return o, env.Usagef("--host-name is %q: want the name alone, such as llm.example.org, without scheme, port or path", name)
		}
	}
	for _, text := range f.Proxy {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			at, addrErr := netip.ParseAddr(text)
			if addrErr != nil {
				return o, env.Usagef("--trusted-proxy is %q: want an address such as 10.0.0.1, or a network such as 10.0.0.0/8", text)
			}
			p = netip.PrefixFrom(at, at.BitLen())
		}
		o.Proxies = append(o.Proxies, p.Masked())
	}
	for _, text := range f.MCP {
		origin, ok := page.ParseOrigin(text)
		if !ok {
			return o, env.Usagef("--mcp is %q: want an origin such as http://localhost:3000 or https://tools.example.org, without a path", text)
		}
		o.MCP = append(o.MCP, origin)
	}
	return o, f.origins(&o)
}

// origins adds the origins of web pages that may send requests, as browsers write them.
func (f *accessFlags) origins(o *server.Options) error {
	for _, text := range f.Cors {
		if text == "*" && len(o.APIKeys) == 0 {
			return env.Usagef("--cors * lets every web page use the models, and there is no key: name the pages' origins, or give a key")
		}
		origin, ok := server.ParseOrigin(text)
		if text == "*" {
			origin, ok = text, true
		}
		if !ok {
			return env.Usagef("--cors is %q: want an origin such as https://chat.example.org, http://nas:* or app://obsidian.md, "+
				"without a path, or *", text)
		}
		o.Origins = append(o.Origins, origin)
	}
	return nil
}

// check refuses an address that strangers can reach, unless there are keys or --open allows it.
func (f *accessFlags) check(at net.Addr, keys []string) error {
	tcp, ok := at.(*net.TCPAddr)
	if f.Open || len(keys) > 0 || ok && tcp.IP.IsLoopback() {
		return nil
	}
	return env.Usagef("--addr %s reaches other machines, and there is no key: give one with --api-key, or let everybody ask with --open", at)
}
