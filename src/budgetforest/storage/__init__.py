"""Models as files: safetensors, JSON, ONNX, and checkpoints of trainings."""
