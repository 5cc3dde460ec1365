// Package cluster has the commands for several machines that answer together: cluster cert, and cluster, which
// shows them.
package cluster
