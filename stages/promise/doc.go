// Package promise says how soon a request would be answered under the load of the moment. It plays the steps to come
// with the scheduler's own policy (package batch) in virtual time, at the speed that steps were seen to have.
package promise
