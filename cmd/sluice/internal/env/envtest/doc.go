// Package envtest has the small worlds in which tests run commands: envs that reach nothing outside, stores and
// certificates in folders of the test.
package envtest
