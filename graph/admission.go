package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"tidemark/internal/auth"
	"tidemark/internal/fault"
	"tidemark/internal/person"
)

// admission lets operations in that have a viewer, or need none. It is the last step before one is executed: the
// first that may wait for something, and never reached by what a transport refuses.
type admission struct {
	limiter MutationLimiter
	welcome func(context.Context, person.Viewer) error
	report  report
}

var (
	_ graphql.HandlerExtension     = admission{}
	_ graphql.OperationInterceptor = admission{}
)

// ExtensionName implements graphql.HandlerExtension.
func (admission) ExtensionName() string { return "Admission" }

// Validate implements graphql.HandlerExtension.
func (admission) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation implements graphql.OperationInterceptor.
func (a admission) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if err := a.admit(ctx, graphql.GetOperationContext(ctx)); err != nil {
		errs := gqlerror.List{present(ctx, err)}
		a.report.log(ctx, errs)
		return graphql.OneShot(&graphql.Response{Errors: errs})
	}
	return next(ctx)
}

func (a admission) admit(ctx context.Context, op *graphql.OperationContext) error {
	fields := 0
	for _, field := range graphql.CollectFields(op, op.Operation.SelectionSet, nil) {
		if !isIntrospection(field.Field) {
			fields++
		}
	}
	switch {
	case fields == 0 && op.Operation.Operation == ast.Subscription:
		return fault.New(fault.BadUserInput, "the subscription skips its only field")
	case fields > 1 && op.Operation.Operation == ast.Subscription: // what validation lets pass under two names
		return fault.New(errcode.ValidationFailed, "a subscription selects one field")
	case fields == 0: // GraphQL's own fields are everybody's
		return nil
	}
	viewer, err := auth.ViewerFrom(ctx)
	if err != nil {
		return err
	}
	if err := checkCaps(op); err != nil {
		return err
	}
	// A service acts for a whole product, at the product's own pace.
	limited := a.limiter != nil && viewer.Role != person.RoleService
	if limited && op.Operation.Operation == ast.Mutation {
		if err := a.limiter.Allow(ctx, viewer.ID, fields); err != nil {
			return err
		}
	}
	if a.welcome == nil {
		return nil
	}
	err = a.welcome(ctx, viewer)
	if op.Operation.Operation == ast.Query && fault.CodeOf(err) == fault.Unavailable {
		return nil // whoever only reads need not be known, and Postgres may take no writes for the moment
	}
	return err
}

// persisted lets clients send a query's hash instead of its text, once they have sent both. Of gqlgen's extension
// it adds the code to errors that have none.
type persisted struct {
	extension.AutomaticPersistedQuery
}

// MutateOperationParameters implements graphql.OperationParameterMutator.
func (p persisted) MutateOperationParameters(ctx context.Context, params *graphql.RawParams) *gqlerror.Error {
	err := p.AutomaticPersistedQuery.MutateOperationParameters(ctx, params)
	if err != nil && err.Extensions["code"] == nil {
		errcode.Set(err, string(fault.BadUserInput))
	}
	return err
}
