package measure

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/compute"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/expertcache"
	"github.com/sluice-ai/sluice/stages/place/replay"
)

type Replay struct {
	compute.EngineFlags

	pastFlags
	From     string    `name:"from" placeholder:"WHEN" help:"With --check: begin with this request: its number from 0, its id, or a time, such as 15:04, 2006-01-02T15:04:05, or 10m for so long ago."`
	To       string    `name:"to" placeholder:"WHEN" help:"With --check: end with this one, named in the same way."`
	Virtual  bool      `help:"In virtual time: without weights, on a model of disk and memory."`
	Check    bool      `help:"Answer the requests again with a model, and fail at the first token that is another one."`
	Policy   []string  `default:"lru,slru,lfu,ours,belady" placeholder:"NAME" help:"Which expert leaves its slot: lru, slru, lfu, ours, or belady, which knows the future. Default: all of them."`
	Slots    int       `placeholder:"N" help:"Slots for the experts of each layer. Default: what --ram gives, else half of the experts."`
	Disk     bandwidth `default:"3GB/s" placeholder:"RATE" help:"How fast the disk is. Default: 3GB/s."`
	Memory   bandwidth `default:"30GB/s" placeholder:"RATE" help:"How fast weights are computed from. Default: 30GB/s."`
	Prefetch []string  `default:"none" placeholder:"NAME" help:"What is read ahead while the disk is idle: none, ours (experts that are likely, by the tokens and what the next router makes of the stream), or oracle, which knows the next layer's. Several are compared. Default: none."`
	JSON     bool      `name:"json" help:"Print JSON."`
}

func (Replay) Examples() [2]string {
	return [2]string{
		`sluice replay run.trace --virtual --slots 64`,
		`sluice replay state --check -m model.gguf --from 14:55 --to 15:05`,
	}
}

// replayed is one line of the result. Its JSON names are part of the interface.
type replayed struct {
	Policy   string  `json:"policy"`
	Prefetch string  `json:"prefetch,omitempty"` // if it is not none
	Hits     int     `json:"hits"`
	Misses   int     `json:"misses"`
	Bytes    int64   `json:"bytes"`
	Waited   float64 `json:"waited_seconds"`           // for the disk
	Hidden   float64 `json:"hidden_percent,omitempty"` // of the wait that reading with perfect foresight would hide
	Tokens   float64 `json:"tokens_per_second"`
}

func (c *Replay) Run(e *env.Env) error {
	if c.Virtual == c.Check {
		return env.Usagef("say --check, to answer the requests again with the model, or --virtual, to compare caches of experts " +
			"without weights")
	}
	if c.Check {
		return c.check(e)
	}
	if c.From != "" || c.To != "" {
		return env.Usagef("--from and --to choose which requests --check answers again: virtual time has all steps")
	}
	kinds, ahead, err := c.compared()
	if err != nil {
		return err
	}
	trace, err := c.load(e)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(trace.Sizes.Layers, func(x place.Experts) bool { return x.Experts > 0 }) {
		fmt.Fprintf(e.Stderr, "the model of %s has no experts: all policies are alike, and one is shown\n", c.Trace)
		kinds, ahead = kinds[:1], ahead[:1]
	}
	setting := replay.Setting{Slots: c.Slots, Weights: int64(c.RAM), Disk: float64(c.Disk), Memory: float64(c.Memory)}
	if layers := trace.Sizes.Layers; c.Slots == 0 && c.RAM == 0 && len(layers) > 0 {
		setting.Slots = max(1, layers[0].Experts/2)
	}
	results := []replayed{}
	for _, setting.Policy = range kinds {
		for _, setting.Prefetch = range ahead {
			r, err := replay.Run(trace, setting)
			if err != nil {
				return fmt.Errorf("%s: %w", c.Trace, err)
			}
			one := replayed{Policy: setting.Policy.String(), Hits: r.Hits, Misses: r.Misses, Bytes: r.Bytes, Waited: r.Waited,
				Tokens: r.Tokens}
			if setting.Prefetch != replay.None {
				one.Prefetch = setting.Prefetch.String()
			}
			results = append(results, one)
		}
	}
	hide(results)
	if c.JSON {
		return env.PrintJSON(e.Stdout, map[string]any{"policies": results})
	}
	return printReplayed(e, results)
}

// hide computes how much of the waiting each prefetch hides, where the same policy was also replayed without prefetch
// and with the oracle.
func hide(results []replayed) {
	const without, perfect = "", "oracle"
	waited := map[[2]string]float64{}
	for _, r := range results {
		waited[[2]string{r.Policy, r.Prefetch}] = r.Waited
	}
	for i := range results {
		r := &results[i]
		none, some := waited[[2]string{r.Policy, without}]
		oracle, all := waited[[2]string{r.Policy, perfect}]
		if some && all && none > oracle && r.Prefetch != without {
			r.Hidden = 100 * (none - r.Waited) / (none - oracle)
		}
	}
}

// compared checks the flags, and returns the policies and prefetches to compare.
func (c *Replay) compared() (kinds []expertcache.Kind, ahead []replay.Prefetch, err error) {
	if c.Slots > 0 && c.RAM > 0 {
		return nil, nil, env.Usagef("--slots and --ram both say how many experts are in memory: give one of them")
	}
	if err := env.Within("--slots", c.Slots, 0, 1<<20); err != nil {
		return nil, nil, err
	}
	for _, name := range c.Policy {
		k, err := expertcache.ParseKind(name)
		if err != nil {
			return nil, nil, env.Usagef("--%v", err)
		}
		kinds = append(kinds, k)
	}
	for _, name := range c.Prefetch {
		p, err := replay.ParsePrefetch(name)
		if err != nil {
			return nil, nil, env.Usagef("--%v", err)
		}
		ahead = append(ahead, p)
	}
	return kinds, ahead, nil
}

func (c *Replay) load(e *env.Env) (trace *replay.Trace, err error) {
	if info, err := os.Stat(c.Trace); err == nil && info.IsDir() {
		return nil, env.Usagef("%s is a folder: --virtual reads one token trace; name a file that ends in .trace", c.Trace)
	}
	f, err := e.OpenInput(c.Trace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := tokentrace.NewReader(f)
	if err == nil {
		trace, err = replay.Load(r)
	}
	if err != nil {
		return nil, env.OnFile(c.Trace, err)
	}
	return trace, nil
}

func printReplayed(e *env.Env, results []replayed) error {
	t := tabwriter.NewWriter(e.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tread ahead\thits\tmisses\thit rate\tread\twaited\thidden\ttokens/s\t")
	for _, r := range results {
		share := 100 * float64(r.Hits) / float64(max(r.Hits+r.Misses, 1))
		hidden := ""
		if r.Hidden != 0 {
			hidden = fmt.Sprintf("%.1f %%", r.Hidden)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.2f %%\t%s\t%.3f s\t%s\t%s\t\n", r.Policy, cmp.Or(r.Prefetch, "none"), r.Hits,
			r.Misses, share, env.BinarySize(r.Bytes), r.Waited, hidden, env.TokensRate(r.Tokens))
	}
	return t.Flush()
}

// bandwidth is bytes a second on the command line: 3GB/s, in powers of 1000 as drives are sold.
type bandwidth float64

func (b *bandwidth) UnmarshalText(text []byte) error {
	digits, unit := string(text), 1.0
	for _, u := range []struct {
		name string
		unit float64
	}{{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}} {
		if rest, ok := strings.CutSuffix(digits, u.name); ok {
			digits, unit = rest, u.unit
			break
		}
	}
	x, err := strconv.ParseFloat(digits, 64)
	if rate := x * unit; err == nil && rate >= 1 && rate < 1e18 {
		*b = bandwidth(rate)
		return nil
	}
	return fmt.Errorf("%q is no bandwidth: want one such as 3GB/s or 550MB/s", text)
}
