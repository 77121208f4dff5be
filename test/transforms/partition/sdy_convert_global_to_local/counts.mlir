// RUN: shard-opt %s --verify-diagnostics --sdy-convert-global-to-local='replica-count=2 partition-count=2'

// expected-error@+1 {{2 replicas of 2 partitions cannot be identified by one id: replica-count or partition-count must be 1}}
module {
}
