package playground

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

func loadSchema(t *testing.T) *ast.Schema {
	t.Helper()
	text, err := os.ReadFile("../schema.graphqls")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphqls", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// rootFields are the operations that the schema has.
func rootFields(schema *ast.Schema) map[string]bool {
	fields := map[string]bool{}
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		if root == nil {
			continue
		}
		for _, field := range root.Fields {
			if field.Name != "__schema" && field.Name != "__type" {
				fields[field.Name] = true
			}
		}
	}
	return fields
}

func TestExamplesFitTheSchema(t *testing.T) {
	schema := loadSchema(t)
	missing := rootFields(schema)
	for _, example := range examples() {
		t.Run(example.Name, func(t *testing.T) {
			document, err := gqlparser.LoadQueryWithRules(schema, example.Query, rules.NewDefaultRules())
			if err != nil {
				t.Fatal(err)
			}
			if len(document.Operations) != 1 || len(document.Operations[0].SelectionSet) != 1 {
				t.Fatal("an example is one operation, and asks for one field")
			}
			operation := document.Operations[0]
			if operation.Name != example.Name {
				t.Errorf("the operation is %s, its tab says %s", operation.Name, example.Name)
			}
			field, ok := operation.SelectionSet[0].(*ast.Field)
			if !ok {
				t.Fatal("an example asks for a field, not a fragment")
			}
			delete(missing, field.Name)

			variables := map[string]any{}
			if example.Variables != "" {
				if err := json.Unmarshal([]byte(example.Variables), &variables); err != nil {
					t.Fatalf("variables: %v", err)
				}
			}
			if _, err := validator.VariableValues(schema, operation, variables); err != nil {
				t.Errorf("variables: %v", err)
			}
			for name := range variables {
				if operation.VariableDefinitions.ForName(name) == nil {
					t.Errorf("the operation has no variable %s", name)
				}
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no example of %s: add examples/NN-….graphql", name)
	}
}
