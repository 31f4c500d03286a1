package main

import "github.com/prometheus/client_golang/prometheus"

// number is what metrics are made of here: each is asked for whenever somebody reads the metrics.
type number interface{ ~int | ~int64 | ~uint64 }

// counter adds a number that only rises to the metrics.
func counter[N number](metrics prometheus.Registerer, name, help string, labels prometheus.Labels, value func() N) {
	metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
		func() float64 { return float64(value()) }))
}

// gauge adds a number that rises and falls to the metrics.
func gauge[N number](metrics prometheus.Registerer, name, help string, value func() N) {
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) }))
}
