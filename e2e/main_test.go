package e2e_test

import (
	"testing"

	"tidemark/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
