package postgres_test

import (
	"testing"

	"tidemark/internal/postgres"
	"tidemark/internal/postgres/pgtest"
)

// People are found among very many by reading the index, for no more entries than are asked for, also where a connection has
// settled for one plan.
func TestPeopleAreFoundByTheIndex(t *testing.T) {
	t.Parallel()
	var seen recorder
	d := openDomain(t, postgres.Config{URL: pgtest.NewDatabase(t), Tracer: &seen})
	conn := d.conn()
	exec(t, conn, `INSERT INTO users (id, display_name)
		SELECT n, (ARRAY['Ada', 'ADA', 'Ängus', 'Ben%', 'b_n'])[n % 5 + 1] || ' ' || n FROM generate_series(1, 50000) n`)
	exec(t, conn, `ANALYZE users`)
	for beginning, want := range map[string]int{"ada": 20, "ADA 10": 20, "ben%": 20, "%": 0, "B_N 4": 20, "ada 5000": 2, "zz": 0} {
		seen.take()
		people, err := d.store.FindPeople(t.Context(), beginning, 20)
		if err != nil {
			t.Fatal(err)
		}
		if len(people) != want {
			t.Errorf("%q finds %d people, want %d: %v", beginning, len(people), want, people)
		}
		find, conn := seen.take()[0], seen.connect(t)
		if _, err := conn.Prepare(t.Context(), "find", find.sql); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			exec(t, conn, "SET plan_cache_mode = "+mode)
			plan := explain(t, conn, statement{sql: "EXECUTE find ('" + beginning + "', 20)"})
			if !plan.uses("users_name") || plan.rowsRead() > 20 {
				t.Errorf("%q, %s: %s", beginning, mode, plan)
			}
		}
	}
}
