package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// plan is what Postgres did to answer a statement.
type plan struct {
	pages       float64 // buffers, in memory or not
	looked      float64 // entries of indexes, and rows of tables that were read without one
	heapFetches float64 // rows that an index-only scan had to look up after all
	otherScans  float64 // scans of arrival that are not of an index alone
}

// node is a part of a plan, as EXPLAIN tells.
type node struct {
	Type        string  `json:"Node Type"`
	Relation    string  `json:"Relation Name"`
	Rows        float64 `json:"Actual Rows"`
	Loops       float64 `json:"Actual Loops"`
	Filtered    float64 `json:"Rows Removed by Filter"`
	Rechecked   float64 `json:"Rows Removed by Index Recheck"`
	HeapFetches float64 `json:"Heap Fetches"`
	Hit         float64 `json:"Shared Hit Blocks"`
	Read        float64 `json:"Shared Read Blocks"`
	Plans       []node  `json:"Plans"`
}

// explain has a prepared statement executed, and returns how that was done.
func explain(ctx context.Context, conn *pgx.Conn, statement string, args []any) (plan, error) {
	literals := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case time.Time:
			literals[i] = "'" + arg.Format(time.RFC3339Nano) + "'"
		default:
			literals[i] = fmt.Sprint(arg)
		}
	}
	var told []byte
	err := conn.QueryRow(ctx, fmt.Sprintf("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE %s (%s)",
		statement, strings.Join(literals, ", ")), pgx.QueryExecModeSimpleProtocol).Scan(&told)
	if err != nil {
		return plan{}, fmt.Errorf("explain %s: %w", statement, err)
	}
	return readPlan(told)
}

func readPlan(told []byte) (plan, error) {
	var explained []struct{ Plan node }
	if err := json.Unmarshal(told, &explained); err != nil {
		return plan{}, fmt.Errorf("read a plan: %w", err)
	}
	var p plan
	for _, e := range explained {
		p.pages += e.Plan.Hit + e.Plan.Read // those of the nodes below are in it
		p.add(e.Plan)
	}
	return p, nil
}

func (p *plan) add(n node) {
	if len(n.Plans) == 0 {
		p.looked += n.Loops * (n.Rows + n.Filtered + n.Rechecked)
	}
	p.heapFetches += n.HeapFetches
	if n.Relation == "arrival" && n.Type != "Index Only Scan" {
		p.otherScans++
	}
	for _, below := range n.Plans {
		p.add(below)
	}
}
