// Package envtest provides the surroundings in which tests run commands: envs without access to anything outside,
// stores and certificates in folders of the test.
package envtest
