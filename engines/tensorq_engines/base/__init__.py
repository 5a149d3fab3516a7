"""The contract: engines, lanes and slots, and what they are described by."""
