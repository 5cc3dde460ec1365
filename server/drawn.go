package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-ai/sluice/actors/paint"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/stages/picture"
)

// drawn counts the pictures that a painter makes.
type drawn struct {
	answer.Painter
	making  *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	steps   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// drawnBy counts what a painter makes; nil if there is none.
func drawnBy(p answer.Painter) *drawn {
	if p == nil {
		return nil
	}
	model := []string{"model"}
	return &drawn{Painter: p,
		making: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_pictures_making", Help: "Pictures that a model makes now, or that wait for another model's.",
		}, model),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_pictures_total", Help: "Pictures by how they ended.",
		}, []string{"model", "end"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_picture_steps_total", Help: "Steps of pictures.",
		}, model),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_picture_seconds", Help: "Time that a picture took which was made.",
			Buckets: prometheus.ExponentialBuckets(0.25, 2, 14),
		}, model),
	}
}

// Describe implements prometheus.Collector.
func (d *drawn) Describe(to chan<- *prometheus.Desc) {
	d.each(func(c prometheus.Collector) { c.Describe(to) })
}

// Collect implements prometheus.Collector.
func (d *drawn) Collect(to chan<- prometheus.Metric) {
	d.each(func(c prometheus.Collector) { c.Collect(to) })
}

func (d *drawn) each(do func(prometheus.Collector)) {
	for _, c := range []prometheus.Collector{d.making, d.ended, d.steps, d.seconds} {
		do(c)
	}
}

// Draw implements answer.Painter.
func (d *drawn) Draw(ctx context.Context, model string, o *paint.Order) (*picture.Bitmap, error) {
	making := d.making.WithLabelValues(model)
	making.Inc()
	defer making.Dec()
	told, steps, began := *o, d.steps.WithLabelValues(model), time.Now()
	told.Tell = func(at paint.Progress) {
		steps.Inc()
		if o.Tell != nil {
			o.Tell(at)
		}
	}
	b, err := d.Painter.Draw(ctx, model, &told)
	end := "made"
	switch {
	case ctx.Err() != nil:
		end = "left"
	case err != nil:
		end = "failed"
	default:
		d.seconds.WithLabelValues(model).Observe(time.Since(began).Seconds())
	}
	d.ended.WithLabelValues(model, end).Inc()
	return b, err
}
