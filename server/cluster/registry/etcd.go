package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// etcd is a registry whose members are keys with a lease, by the JSON form of its third interface, which servers from
// 3.4 on have: FOLDER/CLUSTER/MEMBER has the address.
type etcd struct {
	*client
	user   *url.Userinfo // nil: nobody
	folder string        // of all members, with the slash
	key    string
	addr   string
	life   time.Duration // of a lease without word
	lease  string        // "": none yet
}

func newEtcd(u *url.URL, self Self, of Surroundings) (*etcd, error) {
	c, err := newClient(u, "2379", of)
	if err != nil {
		return nil, err
	}
	folder := strings.Trim(u.Path, "/")
	if folder == "" {
		folder = "sluice"
	}
	e := &etcd{client: c, user: u.User, folder: folder + "/" + self.Cluster + "/", addr: self.Addr, life: life}
	e.key = e.folder + self.Member
	if text, ok := of.Lookup("ETCDCTL_USER"); ok && e.user == nil {
		name, password, ok := strings.Cut(text, ":")
		if !ok {
			return nil, errors.New("ETCDCTL_USER has no password: want NAME:PASSWORD")
		}
		e.user = url.UserPassword(name, password)
	}
	return e, nil
}

// etcd's messages, as far as they are used here: numbers are texts, and bytes are in base64.
type (
	etcdKey struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value,omitempty"`
		Lease string `json:"lease,omitempty"`
		End   []byte `json:"range_end,omitempty"`
	}
	etcdLease struct {
		ID  string `json:"ID,omitempty"`
		TTL string `json:"TTL,omitempty"`
	}
	etcdKept struct{ Result etcdLease }
	etcdList struct{ Kvs []etcdKey }
	etcdUser struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	etcdToken struct{ Token string }
)

// Meet implements Registry. After a fault the next call begins with a new token.
func (e *etcd) Meet(ctx context.Context) ([]string, error) {
	addrs, err := e.meet(ctx)
	if err != nil {
		e.head.Del("Authorization")
	}
	return addrs, err
}

func (e *etcd) meet(ctx context.Context) ([]string, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	if err := e.keep(ctx); err != nil {
		return nil, err
	}
	addrs, listed, err := e.list(ctx)
	if err != nil || listed {
		return addrs, err
	}
	me := &etcdKey{Key: []byte(e.key), Value: []byte(e.addr), Lease: e.lease}
	if err := e.call(ctx, http.MethodPost, "/v3/kv/put", me, nil); err != nil {
		e.lease = "" // it may be another server's
		return nil, err
	}
	addrs, _, err = e.list(ctx) // who comes at the same time has us, or we have it
	return addrs, err
}

// enter gets the token of a user, if there is one and it has none.
func (e *etcd) enter(ctx context.Context) error {
	if e.user == nil || e.head.Get("Authorization") != "" {
		return nil
	}
	password, _ := e.user.Password()
	var got etcdToken
	if err := e.call(ctx, http.MethodPost, "/v3/auth/authenticate", &etcdUser{e.user.Username(), password}, &got); err != nil {
		return fmt.Errorf("user %q: %w", e.user.Username(), err)
	}
	e.head.Set("Authorization", got.Token)
	return nil
}

// keep keeps the lease up, and asks for another where it has expired.
func (e *etcd) keep(ctx context.Context) error {
	if e.lease != "" {
		var kept etcdKept
		if err := e.call(ctx, http.MethodPost, "/v3/lease/keepalive", &etcdLease{ID: e.lease}, &kept); err != nil {
			return err
		}
		if ttl := kept.Result.TTL; ttl != "" && ttl != "0" {
			return nil
		}
	}
	var got etcdLease
	ask := &etcdLease{TTL: fmt.Sprint(int64(e.life.Seconds()))}
	err := e.call(ctx, http.MethodPost, "/v3/lease/grant", ask, &got)
	if err == nil && got.ID == "" {
		err = errors.New("it grants a lease without a number")
	}
	e.lease = got.ID
	return err
}

// list returns the addresses of the folder; listed: ours is there. It may be there by the lease of another --join, and
// is put again when that ends.
func (e *etcd) list(ctx context.Context) (addrs []string, listed bool, err error) {
	end := []byte(e.folder)
	end[len(end)-1]++
	var got etcdList
	ask := &etcdKey{Key: []byte(e.folder), End: end}
	if err := e.call(ctx, http.MethodPost, "/v3/kv/range", ask, &got); err != nil {
		return nil, false, err
	}
	for _, m := range got.Kvs {
		addrs = append(addrs, string(m.Value))
		listed = listed || string(m.Key) == e.key && string(m.Value) == e.addr
	}
	return addrs, listed, nil
}

// Leave implements Registry: with the lease, the key goes.
func (e *etcd) Leave(ctx context.Context) error {
	defer e.http.CloseIdleConnections()
	if e.lease == "" {
		return nil
	}
	return e.call(ctx, http.MethodPost, "/v3/lease/revoke", &etcdLease{ID: e.lease}, nil)
}
