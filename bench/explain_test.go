package main

import "testing"

func TestReadPlan(t *testing.T) {
	t.Parallel()
	got, err := readPlan([]byte(`[{"Plan": {"Node Type": "Nested Loop", "Actual Rows": 1, "Actual Loops": 1,
		"Shared Hit Blocks": 20, "Shared Read Blocks": 3, "Plans": [
			{"Node Type": "Index Only Scan", "Relation Name": "arrival", "Actual Rows": 5, "Actual Loops": 2,
				"Rows Removed by Filter": 1, "Heap Fetches": 4, "Shared Hit Blocks": 9},
			{"Node Type": "Bitmap Heap Scan", "Relation Name": "arrival", "Actual Rows": 7, "Actual Loops": 1,
				"Shared Hit Blocks": 9, "Plans": [{"Node Type": "Bitmap Index Scan", "Actual Rows": 8, "Actual Loops": 1}]}
		]}, "Planning": {"Shared Hit Blocks": 100}}]`))
	if want := (plan{pages: 23, looked: 20, heapFetches: 4, otherScans: 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := readPlan([]byte("no plan")); err == nil {
		t.Error("what is no plan was read")
	}
}
