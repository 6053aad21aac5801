// Package reference completes the OpenAPI document with what struct tags do not say:
// descriptions of operations, schemas and properties, examples of bodies, conditional
// requests and webhook messages. The texts are in reference.yaml.
//
// It does not depend on what an operation does.
package reference
