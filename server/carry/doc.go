// Package carry has the records of an answer travel beside its events: from the member of a cluster that computes a
// stream to the one that passes it on, which takes them out again. With the records another member can go on with the
// answer where it broke off.
package carry
