package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// vitals is what a server tells of its process.
type vitals struct {
	cpu        float64 // seconds, since it was started
	resident   float64 // bytes
	goroutines float64
}

// vitals reads the server's metrics.
func (s *server) vitals(ctx context.Context) (v vitals, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/metrics", http.NoBody)
	if err != nil {
		return v, err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	wanted := map[string]*float64{
		"process_cpu_seconds_total":     &v.cpu,
		"process_resident_memory_bytes": &v.resident,
		"go_goroutines":                 &v.goroutines,
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if number := wanted[name]; number != nil {
			if *number, err = strconv.ParseFloat(value, 64); err != nil {
				return v, err
			}
			delete(wanted, name)
		}
	}
	if len(wanted) > 0 {
		return v, fmt.Errorf("the server's metrics lack %d of what is read", len(wanted))
	}
	return v, nil
}
