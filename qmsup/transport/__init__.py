"""ZeroMQ sockets between our processes: frames in, frames out. What the bytes mean is wire's business."""
