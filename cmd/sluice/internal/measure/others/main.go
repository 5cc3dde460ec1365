// Command others compares what another engine computes with a KV cache in several types, position by position: rows of
// the table that cpu/kv.sh prints. The engine is a command that computes the logits of token ids,
//
//	go run ./cmd/sluice/internal/measure/others -ids IDS.json \
//		'peer logits -m M --kv {kv} --tokens @{ids} -o {out}' f16 q8_0=8.5 q5_0=5.5 q4_0=4.5
//
// where {kv} stands for a type, {ids} for a file of ids and {out} for the file to write: little-endian float32, a row
// of the vocabulary's size for each id. IDS.json is a list, such as sluice tokenize prints. The types are compared with
// the first one, over the second half of each chunk. What stands behind = is the bits of a value, and printed.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/stages/divergence"
)

func main() {
	var c comparison
	ids := flag.String("ids", "", "`FILE` of token ids, as JSON")
	flag.IntVar(&c.chunk, "chunk", 2048, "`N` ids of a chunk")
	most := flag.Int("chunks", 16, "`N` chunks at most")
	flag.Parse()
	if err := c.run(os.Stdout, *ids, *most, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "others:", err)
		os.Exit(1)
	}
}

// comparison is what is measured of an engine.
type comparison struct {
	chunk   int
	command string
	folder  string
}

func (c *comparison) run(w io.Writer, path string, most int, args []string) error {
	if len(args) < 3 || c.chunk < 4 {
		return errors.New("want -ids FILE, a command, and at least two types")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var ids []int32
	if err := json.Unmarshal(text, &ids); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.folder, err = os.MkdirTemp("", "kv"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(c.folder) }()
	c.command = args[0]
	types, bits := make([]string, len(args)-1), make([]string, len(args)-1)
	for i, arg := range args[1:] {
		types[i], bits[i], _ = strings.Cut(arg, "=")
	}
	sums := make([]divergence.Sum, len(types))
	for i := 0; i < most && (i+1)*c.chunk <= len(ids); i++ {
		if err := c.measure(ids[i*c.chunk:][:c.chunk], types, sums); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	for i, kv := range types[1:] {
		r := sums[i+1].Result()
		fmt.Fprintf(w, "| their %s | %s | %.5g | %.4f ± %.4f | %.5f | %.4f | %.2f %% |\n", kv, bits[i+1], r.PPL, r.Ratio,
			r.RatioErr, r.KLMedian, r.KLP999, 100*r.SameTop)
	}
	return nil
}

// measure adds one chunk to the sums.
func (c *comparison) measure(ids []int32, types []string, sums []divergence.Sum) error {
	named := filepath.Join(c.folder, "ids")
	list, _ := json.Marshal(ids)
	if err := os.WriteFile(named, list, 0o600); err != nil {
		return err
	}
	var first [][]float32
	for i, kv := range types {
		rows, err := c.logits(kv, named)
		if err != nil {
			return fmt.Errorf("%s: %w", kv, err)
		}
		if i == 0 {
			first = rows
			continue
		}
		for pos := c.chunk / 2; pos < c.chunk-1; pos++ {
			sums[i].Add(rows[pos], first[pos], ids[pos+1])
		}
		sums[i].EndChunk()
	}
	return nil
}

// logits runs the command.
func (c *comparison) logits(kv, ids string) ([][]float32, error) {
	out := filepath.Join(c.folder, "out")
	line := strings.NewReplacer("{kv}", kv, "{ids}", ids, "{out}", out).Replace(c.command)
	run := exec.Command("sh", "-c", line)
	run.Stderr = os.Stderr
	if err := run.Run(); err != nil {
		return nil, err
	}
	f, err := os.Open(out)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	vocab := int(info.Size() / int64(4*c.chunk))
	if vocab == 0 || info.Size() != int64(4*c.chunk*vocab) {
		return nil, fmt.Errorf("%d bytes of logits are not %d rows", info.Size(), c.chunk)
	}
	rows, bytes := make([][]float32, c.chunk), make([]byte, 4*vocab)
	for i := range rows {
		if _, err := io.ReadFull(f, bytes); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		if i < c.chunk/2 {
			continue
		}
		rows[i] = make([]float32, vocab)
		for j := range rows[i] {
			rows[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*j:]))
		}
	}
	return rows, nil
}
