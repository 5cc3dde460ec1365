//go:build !race

package actors

// slowed says that this build is not the one whose speed counts.
const slowed = false
