package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func main() {
	out := flag.String("o", "", "patched copy")
	verbose := flag.Bool("v", false, "")
	js := flag.String("json", "", "")
	flag.Parse()
	if *js != "" {
		writeJSON(flag.Arg(0), *js, flag.Args()[1:])
		return
	}
	in, err := gguf.Open(flag.Arg(0))
	check(err)
	peer, err := gguf.Open(flag.Arg(1))
	check(err)
	var raw []byte
	if *out != "" {
		raw, err = os.ReadFile(flag.Arg(1))
		check(err)
	}
	type stat struct {
		n                 int
		worst, mean       float64
		worstRel          string
		values            int
		took              time.Duration
	}
	stats := map[quant.Type]*stat{}
	for i := range peer.Tensors {
		p := &peer.Tensors[i]
		if p.Type == quant.F32 {
			continue
		}
		s, _ := in.Tensor(p.Name)
		n := 1
		for _, d := range s.Shape {
			n *= d
		}
		src, theirs, ours := make([]float32, n), make([]float32, n), make([]float32, n)
		check(in.View(s, func(b []byte) error { return quant.Dequantize(s.Type, src, b) }))
		check(peer.View(p, func(b []byte) error { return quant.Dequantize(p.Type, theirs, b) }))
		packed := make([]byte, p.Size)
		start := time.Now()
		check(quant.Quantize(p.Type, packed, src))
		took := time.Since(start)
		check(quant.Dequantize(p.Type, ours, packed))
		a, b := rmse(src, ours), rmse(src, theirs)
		if raw != nil {
			copy(raw[p.Offset:], packed)
		}
		st := stats[p.Type]
		if st == nil {
			st = &stat{}
			stats[p.Type] = st
		}
		st.n++
		st.values += n
		st.took += took
		st.mean += a / b
		if a/b > st.worst {
			st.worst, st.worstRel = a/b, p.Name
		}
		if *verbose {
			fmt.Println(p.Name, p.Type, a, b, a/b)
		}
	}
	for t, st := range stats {
		fmt.Printf("%-8s tensors %d  ratio mean %.4f worst %.4f (%s)  %.1f ns/value\n", t, st.n, st.mean/float64(st.n), st.worst, st.worstRel, float64(st.took.Nanoseconds())/float64(st.values))
	}
	if raw != nil {
		check(os.WriteFile(*out, raw, 0o644))
	}
}

func rmse(a, b []float32) float64 {
	var s float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		s += d * d
	}
	return math.Sqrt(s / float64(len(a)))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
