package graph

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// rulesFor returns the rules of validation: those of the specification, with errors that say nothing of what the
// schema has but was not asked for, and those of ours.
func rulesFor(introspection bool) func() *rules.Rules {
	return func() *rules.Rules {
		all := rules.NewDefaultRules()
		for suggesting, silent := range map[string]core.Rule{
			rules.KnownArgumentNamesRule.Name:  rules.KnownArgumentNamesRuleWithoutSuggestions,
			rules.KnownTypeNamesRule.Name:      rules.KnownTypeNamesRuleWithoutSuggestions,
			rules.ValuesOfCorrectTypeRule.Name: rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
		} {
			all.RemoveRule(suggesting)
			all.AddRule(silent.Name, silent.RuleFunc)
		}
		all.AddRule("NumbersAreReadable", numbersAreReadable)
		if !introspection {
			all.AddRule("NoIntrospection", noIntrospection)
		}
		return all
	}
}

// noIntrospection refuses questions about the schema.
func noIntrospection(events *core.Events, addError core.AddErrFunc) {
	events.OnField(func(_ *core.Walker, field *ast.Field) {
		if isIntrospection(field) && field.Name != "__typename" {
			addError(core.Message("introspection is switched off here: %s cannot be asked for", field.Name), core.At(field.Position))
		}
	})
}

// isIntrospection reports whether a field is GraphQL's own, and not of the schema.
func isIntrospection(field *ast.Field) bool { return strings.HasPrefix(field.Name, "__") }

// numbersAreReadable refuses numbers that no machine type holds. The specification's rule looks only at the types
// that it knows, and reading such a number as one of ours later is a panic.
func numbersAreReadable(events *core.Events, addError core.AddErrFunc) {
	var check func(name string, value *ast.Value)
	check = func(name string, value *ast.Value) {
		if _, err := value.Value(nil); err == nil {
			return
		}
		for i, child := range value.Children {
			step := "." + child.Name
			if value.Kind == ast.ListValue {
				step = fmt.Sprintf("[%d]", i)
			}
			check(name+step, child.Value)
		}
		if len(value.Children) == 0 && !builtIn(value.Definition) {
			addError(core.Message("%s is a number beyond all bounds", name), core.At(value.Position))
		}
	}
	events.OnField(func(_ *core.Walker, field *ast.Field) {
		for _, argument := range field.Arguments {
			check(argument.Name, argument.Value)
		}
	})
	events.OnVariable(func(_ *core.Walker, variable *ast.VariableDefinition) {
		if variable.DefaultValue != nil {
			check("$"+variable.Variable, variable.DefaultValue)
		}
	})
}

func builtIn(scalar *ast.Definition) bool {
	return scalar != nil && scalar.BuiltIn
}
