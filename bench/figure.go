package main

import (
	"fmt"
	"slices"
)

// figure is one number as it was measured in each round.
type figure []float64

func (f figure) median() float64 { return median(f) }

// text is the median and, where they differ from it, the smallest and the largest number.
func (f figure) text(format string) string {
	middle, low, high := fmt.Sprintf(format, f.median()), fmt.Sprintf(format, slices.Min(f)), fmt.Sprintf(format, slices.Max(f))
	if low == high {
		return middle
	}
	return fmt.Sprintf("%s [%s–%s]", middle, low, high)
}

// median returns the middle one of the numbers; of an even count, the mean of the two in the middle.
func median[T ~int64 | ~float64](numbers []T) T {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
