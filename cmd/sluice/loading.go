package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// barDelay is how long loading may take unseen: a bar that flashes up tells nobody anything.
const barDelay = 200 * time.Millisecond

// loadingBar shows bytes as they arrive, or things as they are done, on standard error. It leaves nothing behind.
type loadingBar struct {
	e     *env
	what  string
	count bool // what is counted is no bytes
	began time.Time
	bar   *progressbar.ProgressBar // nil: not shown yet
}

func (l *loadingBar) show(done, total int64) {
	if l.bar == nil {
		if done >= total || l.e.now().Sub(l.began) < barDelay {
			return
		}
		l.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(l.e.stderr), progressbar.OptionSetDescription(l.what),
			progressbar.OptionShowBytes(!l.count), progressbar.OptionUseIECUnits(true), progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionShowCount(),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░", BarStart: "▕", BarEnd: "▏"}))
	}
	_ = l.bar.Set64(done) // a bar that cannot be drawn is no reason to stop
}

// clear takes the bar away, however far it came.
func (l *loadingBar) clear() {
	if l.bar != nil {
		_ = l.bar.Clear()
	}
}
