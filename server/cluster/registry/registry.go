package registry

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// How often a registry is asked, and for how long it lists a member that says nothing any more.
const (
	Beat = 3 * time.Second
	life = 15 * time.Second
)

// Registry lists addresses of members. It is used by one goroutine.
type Registry interface {
	// Meet says that we are there, and returns the addresses of all who do.
	Meet(ctx context.Context) (addrs []string, err error)
	// Leave takes back what Meet said.
	Leave(ctx context.Context) error
	// String is its URL without secrets.
	String() string
}

// Self is what a registry is told of us.
type Self struct{ Cluster, Member, Addr string }

// Surroundings are what registries take from the machine.
type Surroundings struct {
	Lookup func(name string) (value string, ok bool) // of environment variables
	Read   func(file string) ([]byte, error)
}

// Machine is the surroundings of this process. Files are bounded by mostFile.
func Machine(lookup func(string) (string, bool)) Surroundings {
	return Surroundings{lookup, func(name string) ([]byte, error) {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, mostFile))
	}}
}

const mostFile = 1 << 20

// Is reports whether a word of --join names a registry; others are addresses.
func Is(word string) bool { return strings.Contains(word, "://") }

// Open reads a registry's URL. It asks nobody.
func Open(text string, self Self, of Surroundings) (Registry, error) {
	u, err := url.Parse(text)
	if err != nil || strings.Count(u.Host, ":") > 1 && !strings.HasPrefix(u.Host, "[") {
		return nil, fmt.Errorf("it is no URL: want such as etcd://10.0.0.2:2379") // more would repeat a password
	}
	var r Registry
	switch u.Scheme {
	case "etcd", "etcds":
		r, err = newEtcd(u, self, of)
	case "consul", "consuls":
		r, err = newConsul(u, self, of)
	case "k8s":
		r, err = newKubernetes(u, self, of)
	default:
		return nil, fmt.Errorf("%.80q is a registry that is not known: want etcd://, etcds://, consul://, consuls:// or k8s://",
			u.Scheme+"://")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(u), err)
	}
	return r, nil
}

// shown is a URL without secrets.
func shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// settings takes a URL's query, whose names have to be among these.
func settings(u *url.URL, names ...string) (url.Values, error) {
	all, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("what follows the question mark is not NAME=VALUE")
	}
	for name, values := range all {
		if !slices.Contains(names, name) || len(values) != 1 {
			return nil, fmt.Errorf("%.80q is not known there, or named twice: want %s", name, strings.Join(names, ", "))
		}
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("it has a #: write %%23 for one in a password")
	}
	return all, nil
}
