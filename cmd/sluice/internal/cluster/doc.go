// Package cluster has the commands for several machines that answer together: cluster cert.
package cluster
