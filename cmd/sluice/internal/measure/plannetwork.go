package measure

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// jsonNetwork is what passes the network to a member for a token of each sequence.
type jsonNetwork struct {
	Name    string  `json:"name"`
	Turn    float64 `json:"turn_seconds"`
	Rate    float64 `json:"bytes_per_second"`
	Turns   float64 `json:"turns_per_token"`
	Bytes   float64 `json:"bytes_per_token"`
	Seconds float64 `json:"seconds_per_token"` // that these take
}

// away says whether other machines compute some of the model.
func (t *planText) away() bool { return t.plan.Traits.Away }

// beyond is who computes what the processor does not.
func (t *planText) beyond() string {
	switch {
	case !t.away():
		return "the GPU"
	case len(t.plan.Traits.Devices) > 2:
		return "the other members"
	}
	return "the other member"
}

// networks lists what passes the network.
func (t *planText) networks() (all []jsonNetwork) {
	for _, n := range t.plan.Model.Traffic(t.plan.Info.Program, t.speeds, t.sequences) {
		s := t.speeds.Devices[n.Device]
		all = append(all, jsonNetwork{t.plan.Traits.Devices[n.Device].Name, s.Turn, s.Bus, n.Visits, n.Bytes, n.Seconds})
	}
	return all
}

// network says what the network allows, however fast the machines are.
func (t *planText) network(w io.Writer) {
	for _, n := range t.networks() {
		turn := time.Duration(n.Turn * float64(time.Second)).Round(time.Microsecond)
		fmt.Fprintf(w, "network to %s: %s there and back, %.0f MB/s; a token takes %s of it: at most %s tokens/s\n", n.Name, turn,
			n.Rate/1e6, env.BinarySize(int64(n.Bytes)), env.TokensRate(float64(t.sequences)/n.Seconds))
	}
}
