// Package registry finds the addresses of a cluster's members in what others run anyway: etcd, Consul or Kubernetes.
// Each is asked over its plain HTTP interface, every few seconds.
//
// A registry only says where to call: who is a member is told by passes (internal/pass), as for addresses that are
// named.
package registry
