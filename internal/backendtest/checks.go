package backendtest

import (
	"flag"
	"strconv"
)

// Checks is how often the properties of a test program are checked where -rapid.checks does not say it: TestMain calls
// it for devices on which a check takes long, such as a card that a processor plays.
func Checks(n int) error {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if asked {
		return nil
	}
	return flag.Set("rapid.checks", strconv.Itoa(n))
}
