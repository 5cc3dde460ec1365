package lint

import (
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// pins are the versions that were tried together. A module that is not here is no dependency; one that is
// here need not be required yet.
var pins = map[string]string{
	"github.com/BurntSushi/toml":               "v1.6.0",
	"github.com/alecthomas/kong":               "v1.17.0",
	"github.com/anthropics/anthropic-sdk-go":   "v1.84.0",
	"github.com/asynkron/protoactor-go":        "v0.0.0-20260118094027-288962e52f3f",
	"github.com/dlclark/regexp2":               "v1.12.0",
	"github.com/ebitengine/purego":             "v0.11.3",
	"github.com/go-zeromq/zmq4":                "v0.17.0",
	"github.com/goccy/go-yaml":                 "v1.19.2",
	"github.com/google/rpmpack":                "v0.7.1",
	"github.com/iceber/iouring-go":             "v0.0.0-20230403020409-002cfd2e2a90",
	"github.com/klauspost/compress":            "v1.20.0",
	"github.com/klauspost/cpuid/v2":            "v2.4.2",
	"github.com/openai/openai-go/v3":           "v3.95.0",
	"github.com/peterh/liner":                  "v1.2.3",
	"github.com/prometheus/client_golang":      "v1.23.2",
	"github.com/rs/zerolog":                    "v1.35.1",
	"github.com/santhosh-tekuri/jsonschema/v6": "v6.0.3",
	"github.com/stretchr/testify":              "v1.12.1",
	"github.com/valyala/fasthttp":              "v1.74.0",
	"github.com/vmihailenco/msgpack/v5":        "v5.4.1",
	"github.com/vulkan-go/vulkan":              "v0.0.0-20221209234627-c0a353ae26c8",
	"go.uber.org/goleak":                       "v1.3.0",
	"go.opentelemetry.io/otel":                 "v1.38.0", // with protoactor
	"go.opentelemetry.io/otel/sdk":             "v1.38.0",
	"go.opentelemetry.io/otel/trace":           "v1.38.0",
	"golang.org/x/crypto/x509roots/fallback":   "v0.0.0-20261030153154-30a33513ff6d",
	"golang.org/x/image":                       "v0.46.0",
	"golang.org/x/sys":                         "v0.49.0",
	"golang.org/x/term":                        "v0.44.0",
	"pgregory.net/rapid":                       "v1.3.0",
}

// requirement is a module that go.mod names.
type requirement struct {
	Path, Version string
	Indirect      bool
}

// moduleFile is go.mod.
type moduleFile struct {
	Module                 struct{ Path string }
	Require                []requirement
	Replace, Exclude, Tool []any
}

func readModuleFile(t *testing.T) (mod moduleFile) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &mod))
	return mod
}

func TestPins(t *testing.T) {
	mod := readModuleFile(t)
	require.Equal(t, module, mod.Module.Path)
	require.Empty(t, mod.Replace, "go.mod: a replacement holds only inside this module")
	require.Empty(t, mod.Exclude)
	require.Empty(t, mod.Tool, "go.mod: tools pull their own dependencies into the program's")
	for _, r := range mod.Require {
		if want := pins[r.Path]; want != r.Version && (want != "" || !r.Indirect) {
			t.Errorf("go.mod: %s %s: pinned is %q", r.Path, r.Version, want)
		}
	}
}
