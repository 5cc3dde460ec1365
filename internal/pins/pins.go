//go:build pins

// Package pins keeps module requirements while packages are being written; removed before release.
package pins

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/dlclark/regexp2"
	_ "github.com/iceber/iouring-go/syscall"
	_ "github.com/klauspost/cpuid/v2"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/peterh/liner"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rs/zerolog"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "github.com/valyala/fasthttp"
	_ "github.com/valyala/fasthttp/fasthttpadaptor"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/sys/cpu"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
)
