// Package openapi installs the Node programs by which tests check the OpenAPI document
// and generate a TypeScript client of it. package.json and its lock pin their versions.
package openapi
