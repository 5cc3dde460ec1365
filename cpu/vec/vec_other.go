//go:build !amd64 || purego

package vec

// Best is the largest instruction set that this machine has.
func Best() ISA { return Generic }

const nothing = "vec: there is no assembly for this machine"

func sumAVX2(*[Lanes]float32, *float32, int)               { panic(nothing) }
func sumSquaresAVX2(*[Lanes]float32, *float32, int)        { panic(nothing) }
func finiteAVX2(*[Lanes]float32, *float32, int)            { panic(nothing) }
func addAVX2(_, _, _ *float32, _ int)                      { panic(nothing) }
func mulAVX2(_, _, _ *float32, _ int)                      { panic(nothing) }
func scaleAVX2(_, _ *float32, _ float32, _ int)            { panic(nothing) }
func divideAVX2(_, _ *float32, _ float32, _ int)           { panic(nothing) }
func mergeAVX2(_, _ *float32, _, _ float32, _ int)         { panic(nothing) }
func rotateAVX2(_, _, _, _ *float32, _ int)                { panic(nothing) }
func expAVX2(_, _ *float32, _ int)                         { panic(nothing) }
func gateAVX2(_, _ *float32, _, _ float32, _ int)          { panic(nothing) }
func softCapAVX2(_, _ *float32, _, _ float32, _ int)       { panic(nothing) }
func softMaxAVX2(*[Lanes]float32, *[Block]float32) float32 { panic(nothing) }
func halveAVX2(*uint16, *float32, int)                     { panic(nothing) }
func widenAVX2(*float32, *uint16, int)                     { panic(nothing) }
func runAVX2(*panel, int, int)                             { panic(nothing) }
func runAVX512(*panel, int, int)                           { panic(nothing) }
