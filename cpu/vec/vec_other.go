//go:build !amd64 || purego

package vec

// Best is the largest instruction set that this machine has.
func Best() ISA { return Generic }

const nothing = "vec: there is no assembly for this machine"

func sumAVX2(*[Lanes]float32, *float32, int)                 { panic(nothing) }
func sumSquaresAVX2(*[Lanes]float32, *float32, int)          { panic(nothing) }
func finiteAVX2(*[Lanes]float32, *float32, int)              { panic(nothing) }
func addAVX2(_, _, _ *float32, _ int)                        { panic(nothing) }
func mulAVX2(_, _, _ *float32, _ int)                        { panic(nothing) }
func scaleAVX2(_, _ *float32, _ float32, _ int)              { panic(nothing) }
func divideAVX2(_, _ *float32, _ float32, _ int)             { panic(nothing) }
func mergeAVX2(_, _ *float32, _, _ float32, _ int)           { panic(nothing) }
func rotateAVX2(_, _, _, _ *float32, _ int)                  { panic(nothing) }
func rotatePairsAVX2(_, _, _ *float32, _ int)                { panic(nothing) }
func expAVX2(_, _ *float32, _ int)                           { panic(nothing) }
func gateAVX2(_, _ *float32, _, _ float32, _ int)            { panic(nothing) }
func softCapAVX2(_, _ *float32, _, _ float32, _ int)         { panic(nothing) }
func softMaxAVX2(*[Lanes]float32, *[Block]float32) float32   { panic(nothing) }
func halveAVX2(*uint16, *float32, int)                       { panic(nothing) }
func widenAVX2(*float32, *uint16, int)                       { panic(nothing) }
func largestAVX2(*float32, int) float32                      { panic(nothing) }
func roundAVX2(*int8, *float32, float32, int)                { panic(nothing) }
func widenBytesAVX2(*float32, *int8, int)                    { panic(nothing) }
func mulRowsAVX2(*float32, *[Block]float32, int)             { panic(nothing) }
func mulAddRowsAVX2(_, _ *float32, _ *[Block]float32, _ int) { panic(nothing) }

func sumAVX512(*float32, int) float32                          { panic(nothing) }
func sumSquaresAVX512(*float32, int) float32                   { panic(nothing) }
func finiteAVX512(*float32, int) float32                       { panic(nothing) }
func largestAVX512(*float32, int) float32                      { panic(nothing) }
func addAVX512(_, _, _ *float32, _ int)                        { panic(nothing) }
func mulAVX512(_, _, _ *float32, _ int)                        { panic(nothing) }
func scaleAVX512(_, _ *float32, _ float32, _ int)              { panic(nothing) }
func divideAVX512(_, _ *float32, _ float32, _ int)             { panic(nothing) }
func mergeAVX512(_, _ *float32, _, _ float32, _ int)           { panic(nothing) }
func rotateAVX512(_, _, _, _ *float32, _ int)                  { panic(nothing) }
func expAVX512(_, _ *float32, _ int)                           { panic(nothing) }
func gateAVX512(_, _ *float32, _, _ float32, _ int)            { panic(nothing) }
func softCapAVX512(_, _ *float32, _, _ float32, _ int)         { panic(nothing) }
func softMaxAVX512(*[Block]float32) (_, _ float32)             { panic(nothing) }
func mulRowsAVX512(*float32, *[Block]float32, int)             { panic(nothing) }
func mulAddRowsAVX512(_, _ *float32, _ *[Block]float32, _ int) { panic(nothing) }
func halveAVX512(*uint16, *float32, int)                       { panic(nothing) }
func widenAVX512(*float32, *uint16, int)                       { panic(nothing) }
func roundAVX512(*int8, *float32, float32, int)                { panic(nothing) }
func widenBytesAVX512(*float32, *int8, int)                    { panic(nothing) }

func runAVX2(*panel, int, int)   { panic(nothing) }
func runAVX512(*panel, int, int) { panic(nothing) }
