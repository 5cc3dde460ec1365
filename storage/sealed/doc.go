// Package sealed encrypts what files of the state folder hold, under a key of the user's: AES-256-GCM, each part under
// a key and a nonce of its own, bound to what the part is. Who has the folder without the key reads nothing in it, and
// can put nothing in it, and nothing in another's place, that is taken for what it is not. What is deleted, or what was
// there before in the same place, cannot be told.
package sealed
