"""What Ymir predicts: transferability, iterations, and the speed factors of pairs."""
