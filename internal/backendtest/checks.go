package backendtest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Main runs a test program whose properties are checked so many times where -rapid.checks does not say it: TestMain is
// it for devices on which a check takes long, such as a card that a processor plays.
func Main(m *testing.M, checks int) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", strconv.Itoa(checks)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
