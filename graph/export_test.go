package graph

// Present is present, for what no argument of the schema can bring about today.
var Present = present
