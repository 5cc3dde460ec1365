package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// commands is where those of the program are, by families.
const commands = "cmd/sluice/internal/"

// layers says which folders of this module the code of a folder may import; the first row that fits holds.
// Every package may import what lies in its own row's folder, but a stage never imports another stage.
var layers = []struct {
	dir string
	may []string
}{
	{commands + "env/envtest", []string{commands + "env", "storage/store", "internal"}},
	{commands + "env", []string{"internal"}},
	{commands + "models", []string{commands + "env", "stages", "storage", "internal"}}, // it runs nothing
	{commands + "compute", []string{commands + "env", commands + "models", "actors", "stages", "storage", "cpu", "gpu",
		"internal"}},
	{commands + "text", []string{commands + "env", commands + "models", commands + "compute", "stages", "internal"}},
	{commands + "weights", []string{commands + "env", commands + "models", "stages", "storage", "internal"}},
	{commands + "library", []string{commands + "env", commands + "models", "stages", "storage", "internal"}},
	{commands + "ask", []string{commands + "env", commands + "models", commands + "compute", commands + "library", "actors",
		"stages", "internal"}},
	{commands + "paint", []string{commands + "env", commands + "models", commands + "compute", "actors", "stages", "storage",
		"cpu", "internal"}},
	{commands + "measure", []string{commands + "env", commands + "models", commands + "compute", commands + "paint",
		"actors", "stages", "storage", "cpu", "gpu", "internal"}},
	{commands + "watch", []string{commands + "env", "server", "stages", "internal"}},
	{commands + "cluster", []string{commands + "env", commands + "watch", "internal"}},
	{commands + "serve", []string{commands + "env", commands + "models", commands + "compute", commands + "library",
		commands + "paint", "server", "actors", "stages", "storage", "cpu", "internal"}},
	{"cmd/libsluice", []string{""}}, // what package sluice has, for C
	{"cmd/sluice", []string{"server", "actors", "stages", "storage", "cpu", "gpu", "internal"}},
	{"server/wire", []string{"stages/bill", "internal/jsontext"}},
	{"server/quota", nil},
	{"server/cluster/registry", nil},
	{"server/cluster", []string{"stages/route", "internal"}},
	{"server/carry", nil},
	{"server/kvevents", []string{"stages/kv", "internal"}},
	{"server/fetch", nil},
	{"server/tracing/tracingtest", nil},
	{"server/tracing", []string{"stages/bill"}},
	{"server/page", nil},
	{"server/exchange", []string{"server/quota", "server/wire", "stages/bill"}},
	{"server/answer", []string{"server/carry", "server/exchange", "server/fetch", "server/quota", "server/tracing",
		"server/wire", "actors", "stages/bill", "stages/chat", "stages/constrain", "stages/embed", "stages/grammar", "stages/picture", "stages/promise", "stages/reply",
		"stages/sample", "stages/token", "stages/tools", "internal/jsontext", "internal/refusal"}},
	{"server/decode/decodetest", []string{"server/answer", "server/wire", "stages/chat", "internal"}},
	{"server/decode", []string{"server/answer", "server/wire", "stages/chat", "stages/sample", "stages/token",
		"internal/jsontext"}},
	{"server/anthropic", []string{"server/answer", "server/decode", "server/exchange", "server/wire", "actors", "stages/chat",
		"internal/jsontext"}},
	{"server/llamacpp", []string{"server/answer", "server/decode", "server/exchange", "server/wire", "actors", "stages/chat",
		"stages/sample", "stages/token", "internal/jsontext"}},
	{"server/ollama", []string{"server/answer", "server/decode", "server/exchange", "server/wire", "actors", "stages/chat",
		"stages/model/ftype", "stages/model/modelfile", "internal/ir", "internal/jsontext", "internal/meta"}},
	{"server/sdapi", []string{"server/answer", "server/exchange", "server/wire"}},
	{"server/openai", []string{"server/answer", "server/decode", "server/exchange", "server/wire", "actors", "stages/chat",
		"stages/sample", "internal/jsontext"}},
	{"server", []string{"actors", "stages/chat", "stages/route", "stages/sample", "stages/swap", "stages/token", "internal"}},
	{"actors/run", []string{"internal/trace"}}, // it knows no model, no device and no file
	{"actors/devicetest", []string{"cpu", "gpu", "internal"}},
	{"actors/tiers", []string{"actors/run", "stages/place", "storage", "internal"}}, // it knows no steps
	{"actors", []string{"stages", "storage", "cpu", "gpu", "internal"}},
	{"stages/model/arch/archtest", []string{"storage/gguf", "stages/model/arch", "internal"}},
	{"stages/model/vision/visiontest", []string{"storage/gguf", "internal"}},
	{"stages/model/convert/converttest",
		[]string{"stages/model/convert", "storage/checkpoint", "storage/gguf", "storage/safetensors", "internal"}},
	{"stages/promise", []string{"stages/batch", "internal"}},
	{"stages/constrain", []string{"stages/grammar", "stages/token", "stages/tools", "internal"}},
	{"stages/prompt", []string{"stages/chat", "stages/constrain", "stages/picture", "stages/token", "stages/tools",
		"internal"}},
	{"stages/reply", []string{"stages/batch", "stages/stop", "stages/token", "stages/tools", "internal"}},
	{"stages", []string{"internal"}},
	{"cpu", []string{"internal"}},
	{"gpu/kernel", []string{"internal/backend", "internal/ir", "internal/kvcode", "internal/quant"}},
	{"gpu/plan", []string{"gpu/kernel", "internal/backend", "internal/ir"}}, // it knows no driver
	{"gpu/driver", []string{"gpu/kernel", "internal/quant"}},
	{"gpu/exec", []string{"gpu/driver", "gpu/kernel", "gpu/plan", "internal/backend", "internal/ir", "internal/quant"}}, // no API
	{"gpu/tile/tiletest", []string{"gpu/kernel", "gpu/tile", "internal/quant"}},
	{"gpu/tile", []string{"gpu/kernel", "internal/ir", "internal/quant"}},
	{"gpu/null", []string{"gpu/driver", "gpu/kernel", "internal"}},
	{"gpu", []string{"internal"}},
	{"storage", []string{"internal"}},
	{"internal/ir/live", []string{"internal/ir"}},                      // every device plans with it
	{"internal/namedmodel", []string{"stages", "storage", "internal"}}, // it runs nothing
	{"internal/devices", []string{"cpu", "gpu", "internal"}},
	{"internal", nil},
	{".", []string{"actors", "stages", "internal"}}, // the library
}

// forTests are packages that only tests may import.
var forTests = []string{commands + "env/envtest", "actors/devicetest", "internal/testref", "internal/backendtest",
	"internal/lint", "gpu/null", "gpu/cuda/fake", "gpu/tile/tiletest", "stages/model/arch/archtest",
	"stages/model/convert/converttest", "stages/model/vision/visiontest", "stages/place/placetest", "storage/hub/hubtest",
	"server/decode/decodetest",
	"server/tracing/tracingtest", "storage/sealed/sealedtest"}

// private are packages that one folder alone may import, with the reason; its tests may.
var private = []struct{ dir, owner, why string }{
	{"stages/chat/jinja", "stages/chat", "messages, tools and variables are values of stages/chat and internal/jsontext"},
}

// thirdParty says who may import a module's packages outside tests (nobody, where the list is empty), and why we do
// not write them ourselves. Tests may import all of them. What is not here must not be imported: a dependency is a
// decision, and its reason stands beside it.
var thirdParty = []dependency{
	{"github.com/BurntSushi/toml", []string{"cmd/sluice"}, "the file of settings; faults have their line"},
	{"github.com/alecthomas/kong", []string{"cmd/sluice"},
		"flags and help of fourteen commands from structs, so that a command is one file"},
	{"github.com/anthropics/anthropic-sdk-go", nil, "a client that we did not write judges the dialect"},
	{"github.com/asynkron/protoactor-go/actor", []string{"actors"},
		"supervision, life cycle and dead letters, with room for a mailbox of our own"},
	{"github.com/dlclark/regexp2", nil,
		"look-ahead, which Go's regexp lacks: tests run the published pre-tokenizer patterns against our cutters"},
	{"github.com/ebitengine/purego", []string{"gpu"}, "calls drivers' libraries where cgo is off"},
	{"github.com/go-zeromq/zmq4", nil, "a subscriber that we did not write judges the sockets; see ADR 110"},
	{"github.com/goccy/go-yaml", []string{"cmd/sluice"}, "configuration files; faults are shown with their line"},
	{"github.com/google/rpmpack", []string{"internal/release"}, "packages that dnf and zypper take; it is inside nfpm"},
	{"github.com/iceber/iouring-go/syscall", []string{"storage/uring"}, // the module's root does not link
		"the kernel's numbers and structures of io_uring, which x/sys lacks"},
	{"github.com/klauspost/compress", []string{"gpu/cuda/kernels", "gpu/vulkan/shaders", "internal/testref"},
		"GPUs' kernels, and the reference data of tests, are stored as zstd"},
	{"github.com/klauspost/cpuid/v2", []string{"cpu", "cmd/sluice"},
		"instruction sets that x/sys/cpu does not tell apart, names of processors and sizes of caches"},
	{"github.com/openai/openai-go/v3", nil, "a client that we did not write judges the dialect"},
	{"github.com/prometheus/client_golang", []string{"actors", "server"}, "the format that monitors scrape, histograms too"},
	{"github.com/rs/zerolog", []string{"actors", "server", "cmd/sluice"},
		"a log for people or programs that allocates nothing where its level is off"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"server"}, "a schema is judged by the standard's own tests"},
	{"github.com/stretchr/testify",
		[]string{commands + "env/envtest", "actors/devicetest", "internal/backendtest", "gpu/tile/tiletest",
			"stages/model/arch/archtest", "stages/model/convert/converttest", "stages/model/vision/visiontest",
			"server/decode/decodetest", "server/tracing/tracingtest", "storage/sealed/sealedtest"},
		"failures print both sides and their difference"},
	{"github.com/valyala/fasthttp", []string{"server"},
		"requests without an allocation for each header, and bodies as streams: many clients at once"},
	{"github.com/vmihailenco/msgpack/v5", nil, "a decoder that we did not write judges the batches"},
	{"github.com/vulkan-go/vulkan", []string{"gpu"}, "Vulkan's structures and loader, generated from its registry"},
	{"go.opentelemetry.io/otel", []string{"server/tracing"}, "W3C's Trace Context, and what spans have; see ADR 121"},
	{"go.opentelemetry.io/otel/sdk", []string{"server/tracing"}, "it samples and batches spans"},
	{"go.opentelemetry.io/otel/trace", []string{"server/tracing"}, "the interfaces that spans of the SDK have, and their ids"},
	{"go.uber.org/goleak", nil, "tests fail on goroutines that were left behind"},
	{"golang.org/x/crypto/x509roots/fallback", []string{"internal/release"},
		"the certificates of images, the same wherever they are made"},
	{"golang.org/x/image", []string{"stages/picture"}, "WebP's two codecs, by the authors of Go's other decoders"},
	{"golang.org/x/sys", []string{"internal/system", "storage/uring", "server/exchange", "cmd/sluice/internal/ask", "gpu"},
		"system calls that package syscall froze without; who asks them what all programs ask is internal/system"},
	{"golang.org/x/term", []string{"cmd/sluice"}, "whether a person watches, and how wide the screen is, on every system"},
	{"pgregory.net/rapid", []string{"internal/backendtest", "server/decode/decodetest"}, "random cases that shrink to the smallest that fails"},
}

// dependency is a module that was decided on.
type dependency struct {
	path string
	dirs []string
	why  string
}

// forbidden are packages of the standard library that product code may not import, with the reason.
var forbidden = []struct {
	path   string
	except []string
	why    string
}{
	{"C", []string{"gpu", "cmd/libsluice"}, "the program must build with CGO_ENABLED=0"},
	{"io/ioutil", nil, "os and io have the same"},
	{"log", nil, "zerolog writes the log, errors are returned"},
	{"math/rand", nil, "math/rand/v2 has sources that stay the same for a seed"},
	{"plugin", nil, "everything is linked"},
	{"reflect", []string{"server", "cmd/sluice"}, "plain code can be searched"},
	{"testing",
		[]string{commands + "env/envtest", "actors/devicetest", "gpu/cuda/fake", "gpu/tile/tiletest", "internal/testref",
			"internal/backendtest",
			"stages/model/arch/archtest", "stages/model/convert/converttest", "stages/model/vision/visiontest",
			"server/decode/decodetest", "server/tracing/tracingtest"},
		"it adds flags to the program"},
}

// pure are the folders of code without I/O, clock and goroutines.
var pure = []string{"stages", "gpu/kernel", "gpu/plan", "internal/ir/live", "internal/trace/stall"}

// impure are packages that such code has no use for, and may not import.
var impure = []string{"context", "net", "os", "os/exec", "path/filepath", "runtime", "sync/atomic", "syscall", "unsafe"}

func TestImports(t *testing.T) { each(t, imports) }

func imports(s *source) (faults []string) {
	for _, spec := range s.ast.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if fault := importFault(s, path); fault != "" {
			faults = append(faults, fmt.Sprintf("%s: imports %s: %s", s.at(spec.Pos()), path, fault))
		}
	}
	return faults
}

func importFault(s *source, path string) string {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case under(path, module):
		return moduleFault(s, strings.TrimPrefix(strings.TrimPrefix(path, module), "/"))
	case strings.Contains(first, "."):
		return thirdPartyFault(s, path)
	case s.test():
		return ""
	}
	for _, f := range forbidden {
		if path == f.path && !underAny(s.dir(), f.except) {
			return f.why
		}
	}
	if underAny(s.dir(), pure) && underAny(path, impure) && !underAny(s.dir(), forTests) {
		return "it is pure logic: no I/O, no goroutines, no clock"
	}
	return ""
}

func moduleFault(s *source, target string) string {
	for _, p := range private {
		if under(target, p.dir) && !under(s.dir(), p.owner) {
			return fmt.Sprintf("only %s may import it: %s", p.owner, p.why)
		}
	}
	for _, layer := range layers {
		if !under(s.dir(), layer.dir) {
			continue
		}
		own := layer.dir
		if own == "stages" {
			own = strings.Join(strings.SplitN(s.dir(), "/", 3)[:2], "/")
		}
		if s.test() {
			if underAny(target, []string{"actors", "server", "cmd"}) && !underAny(target, append(layer.may, own)) {
				return "not even a test may reach up there"
			}
			return ""
		}
		if underAny(target, forTests) && !underAny(s.dir(), forTests) {
			return "only tests may import it"
		}
		if !underAny(target, append(layer.may, own)) {
			return fmt.Sprintf("%s may import %v of this module", own, layer.may)
		}
		return ""
	}
	return "the importing folder is not in the layout: see layers in internal/lint"
}

func thirdPartyFault(s *source, path string) string {
	for _, dep := range thirdParty {
		if !under(path, dep.path) {
			continue
		}
		if s.test() || underAny(s.dir(), dep.dirs) {
			return ""
		}
		if len(dep.dirs) == 0 {
			return "only tests may import it"
		}
		return fmt.Sprintf("only %v may import it", dep.dirs)
	}
	return "no dependency that was decided on: see thirdParty in internal/lint"
}

// TestDependencies: each module has its reason and its pin, and go.mod requires none that nothing imports.
func TestDependencies(t *testing.T) {
	require.Empty(t, unreasoned(thirdParty))
	used := map[string]bool{}
	each(t, func(s *source) []string {
		for _, spec := range s.ast.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			for _, dep := range thirdParty {
				used[dep.path] = used[dep.path] || under(path, dep.path)
			}
		}
		return nil
	})
	for _, r := range readModuleFile(t).Require {
		ours := func(dep dependency) bool { return under(dep.path, r.Path) && used[dep.path] }
		if !r.Indirect && !slices.ContainsFunc(thirdParty, ours) {
			t.Errorf("go.mod: %s: nothing here imports it: go mod tidy", r.Path)
		}
	}
}

// unreasoned lists the modules that say too little of why they are here, or what another one says.
func unreasoned(deps []dependency) (faults []string) {
	for _, dep := range deps {
		module := func(path string) bool { return under(dep.path, path) }
		switch {
		case len(strings.Fields(dep.why)) < 5:
			faults = append(faults, fmt.Sprintf("%s: say what it does that we should not write ourselves", dep.path))
		case !slices.ContainsFunc(slices.Collect(maps.Keys(pins)), module):
			faults = append(faults, dep.path+": has no version in pins")
		}
	}
	return faults
}

func TestDependenciesSeesFaults(t *testing.T) {
	const path = "github.com/alecthomas/kong"
	require.Empty(t, unreasoned([]dependency{{path, nil, "flags and help from structs"}}))
	require.Len(t, unreasoned([]dependency{{path, nil, ""}, {path, nil, "we need it"}}), 2)
	require.Len(t, unreasoned([]dependency{{"example.com/new", nil, "it does what we should not"}}), 1)
}

func TestImportsSeesFaults(t *testing.T) {
	for _, c := range []struct{ file, path, want string }{
		{"stages/kv/kv.go", module + "/internal/ir", ""},
		{"stages/kv/kv.go", module + "/actors", "may import [internal]"},
		{"stages/kv/kv.go", module + "/stages/token", "may import [internal]"},
		{"stages/chat/chat.go", module + "/stages/chat/jinja", ""},
		{"stages/chat/chat_test.go", module + "/stages/chat/jinja", ""},
		{"server/decode/fields.go", module + "/stages/chat/jinja", "only stages/chat may import it"},
		{"server/decode/fields.go", module + "/stages/chat", ""},
		{"server/openai/chat_test.go", module + "/stages/chat/jinja", "only stages/chat may import it"},
		{"stages/prompt/writer.go", module + "/stages/chat/jinja", "only stages/chat may import it"},
		{"cmd/sluice/internal/text/template.go", module + "/stages/chat/jinja", "only stages/chat may import it"},
		{"stages/kv/kv.go", "os", "pure"},
		{"stages/kv/kv.go", "net/http", "pure"},
		{"stages/kv/kv_test.go", "os", ""},
		{"stages/kv/kv_test.go", module + "/storage/gguf", ""},
		{"stages/kv/kv_test.go", module + "/actors", "not even a test"},
		{"internal/ir/live/x.go", module + "/internal/ir", ""},
		{"internal/ir/live/x.go", module + "/internal/backend", "may import [internal/ir]"},
		{"internal/ir/live/x.go", "os", "pure"},
		{"gpu/plan/x.go", module + "/gpu/kernel", ""},
		{"gpu/plan/x.go", module + "/gpu/driver", "may import [gpu/kernel"},
		{"gpu/plan/x.go", "sync/atomic", "pure"},
		{"gpu/exec/x.go", module + "/gpu/vulkan", "may import [gpu/driver"},
		{"gpu/null/x.go", module + "/cpu/ref", "may import [gpu/driver"},
		{"gpu/null/x_test.go", module + "/cpu/ref", ""},
		{"gpu/vulkan/x.go", module + "/gpu/exec", ""},
		{commands + "env/screen.go", module + "/stages/chat", "may import [internal]"},
		{commands + "models/open.go", module + "/actors", "may import ["},
		{commands + "watch/top.go", module + "/" + commands + "compute", "may import ["},
		{commands + "ask/run.go", module + "/" + commands + "env/envtest", "only tests"},
		{"server/server.go", module + "/cpu", "may import"},
		{"server/server_test.go", module + "/actors", ""},
		{"actors/run/mailbox.go", module + "/stages/batch", "may import [internal/trace]"},
		{"actors/run/mailbox.go", module + "/internal/backend", "may import [internal/trace]"},
		{"actors/run/mailbox.go", module + "/actors", "may import [internal/trace]"},
		{"actors/tiers/pool.go", module + "/actors/run", ""},
		{"actors/tiers/pool.go", module + "/actors", "may import [actors/run stages/place"},
		{"actors/tiers/residency.go", module + "/stages/batch", "may import [actors/run stages/place"},
		{"actors/tiers/residency.go", module + "/stages/place/shelf", ""},
		{"actors/tiers/residency.go", module + "/stages/place/placetest", "only tests"},
		{"actors/engine.go", module + "/internal/testref", "only tests"},
		{"actors/engine.go", "log", "zerolog"},
		{"cpu/x.go", "C", "CGO_ENABLED"},
		{"storage/uring/x.go", "github.com/iceber/iouring-go", "no dependency"},
		{"storage/uring/x.go", "github.com/iceber/iouring-go/syscall", ""},
		{"actors/engine.go", "github.com/asynkron/protoactor-go/remote", "no dependency"},
		{"stages/token/split.go", "github.com/dlclark/regexp2", "only tests"},
		{"util/x.go", module + "/internal/ir", "not in the layout"},
	} {
		s := parse(t, c.file, "package p\nimport _ "+strconv.Quote(c.path)+"\n")
		got := strings.Join(imports(s), "\n")
		if c.want == "" {
			require.Empty(t, got, "%s importing %s", c.file, c.path)
			continue
		}
		require.Contains(t, got, c.want, "%s importing %s", c.file, c.path)
	}
}
