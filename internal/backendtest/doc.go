// Package backendtest holds every device against the reference: ops one by one, whole small models, programs in unusual
// orders, the laws that a row's bits depend on nothing but the row, and the fixtures, whose logits another
// implementation computed.
//
// A device's tests pass the device, the oracle and a loader of model files; only tests import this package.
package backendtest
