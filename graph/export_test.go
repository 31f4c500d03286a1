package graph

// Present is present, for what no argument of the schema can bring about today.
var Present = present

// NewHandlerOf serves another schema.
var NewHandlerOf = newHandler

// BadgeChangeEncoder is badgeChangeEncoder.
var BadgeChangeEncoder = badgeChangeEncoder
