// Package zmtp speaks ZMTP 3.0, ZeroMQ's protocol between peers, over a connection that exists already and without its
// security: greetings, and messages of several frames with bounds for what a peer may send. It has no sockets, queues
// or reconnecting: its callers know what is to become of messages for which there is no room.
package zmtp
