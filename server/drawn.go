package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// drawn counts the pictures that models make. It implements answer.Gallery.
type drawn struct {
	making  *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	steps   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newDrawn() *drawn {
	model := []string{"model"}
	return &drawn{
		making: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_pictures_making", Help: "Pictures that a model makes now.",
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

func (d *drawn) collectors() []prometheus.Collector {
	return []prometheus.Collector{d.making, d.ended, d.steps, d.seconds}
}

// Begun implements answer.Gallery.
func (d *drawn) Begun(model string) { d.making.WithLabelValues(model).Inc() }

// Stepped implements answer.Gallery.
func (d *drawn) Stepped(model string) { d.steps.WithLabelValues(model).Inc() }

// Ended implements answer.Gallery.
func (d *drawn) Ended(model, how string, took time.Duration) {
	d.making.WithLabelValues(model).Dec()
	d.ended.WithLabelValues(model, how).Inc()
	if how == "made" {
		d.seconds.WithLabelValues(model).Observe(took.Seconds())
	}
}
