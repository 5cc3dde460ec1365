// Package weights has the commands that show and write files of models: inspect, convert, quantize, synth.
package weights
