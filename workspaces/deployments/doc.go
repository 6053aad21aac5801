// Package deployments is about large models on several GPUs: what a model in the shared
// directories consists of, how much memory it needs, and how it would be placed on the
// devices of the pool or on stated ones. The decisions are those of workspaces/shard. A model in
// ONNX format is also planned as a task graph on CPUs, by workspaces/onnx and workspaces/graph.
package deployments
